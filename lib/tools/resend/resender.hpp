// Captures onto a wire: the thread that reads, the ring, the sender, and what became of every packet.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "resend/frame_ring.hpp"
#include "resend/read_ahead.hpp"
#include "resend/rewrite_text.hpp"
#include "resend/timed_sender.hpp"
#include "resend/wire_target.hpp"

namespace weir::resend {

class Resender {
public:
    struct Config {
        stages::CaptureSource::Config source;
        std::uint32_t loop = 1;  ///< the captures are sent so often, each pass one mean distance after the last
        Destination to;
        wire::Rewrite rewrite;
        double speed = 1;                  ///< 0: as fast as the target takes packets
        std::optional<std::uint32_t> mtu;  ///< of a device; by default usual_mtu()
    };
    /// Every packet that was read, by its end.
    struct Account {
        std::uint64_t read = 0;
        std::uint64_t read_bytes = 0;  ///< of whole frames
        std::uint64_t skipped = 0;     ///< outside of the range of time: not among those read
        std::uint64_t sent = 0;
        std::uint64_t sent_bytes = 0;  ///< of frames for a device, of payload for a socket
        std::array<std::uint64_t, core::count_of<NotSent>> not_sent{};
        std::uint64_t lost_by_target = 0;  ///< of those sent

        [[nodiscard]] std::uint64_t not_sent_in_all() const noexcept;
        [[nodiscard]] bool balanced() const noexcept { return read == sent + not_sent_in_all(); }
    };
    static constexpr std::size_t ring_bytes = std::size_t{64} << 20;

    /// Opens captures and destination: throws core::UsageError or core::RunError. `stop` ends it early.
    Resender(const Config& config, const std::atomic<bool>& stop);
    ~Resender();
    Resender(const Resender&) = delete;
    Resender& operator=(const Resender&) = delete;

    /// Sends everything. Where the destination fails, timing().error says why; the account holds all the same.
    void run();

    // After run():
    [[nodiscard]] const Account& account() const noexcept { return account_; }
    [[nodiscard]] const TimedSender::Result& timing() const noexcept { return sender_.result(); }
    [[nodiscard]] const ReadAhead::RewriteCounts& rewritten() const noexcept { return reader_.rewritten(); }
    [[nodiscard]] std::vector<std::string> warnings() const { return reader_.source().warnings(); }
    [[nodiscard]] std::uint32_t passes() const noexcept { return reader_.source().passes(); }
    [[nodiscard]] simulate::NetworkErrors network_errors() const { return target_->network_errors(); }
    // For any thread:
    [[nodiscard]] std::uint64_t packets_so_far() const noexcept { return sender_.packets(); }
    [[nodiscard]] std::uint64_t bytes_so_far() const noexcept { return sender_.bytes(); }

private:
    void wait_for_start();
    void end_reading();

    const std::atomic<bool>& stop_;
    std::uint32_t mtu_;
    std::atomic<bool> abandon_{false};  ///< the reader need not go on
    FrameRing ring_{ring_bytes};
    ReadAhead reader_;
    std::unique_ptr<WireTarget> target_;
    TimedSender sender_;
    Account account_;
};

}  // namespace weir::resend
