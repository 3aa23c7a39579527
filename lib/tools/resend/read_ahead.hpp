// Reads captures ahead of the sender, on an ordinary thread, so that the sender does not wait for files: decides what
// of a record is sent, rewrites addresses, and counts what is not.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "resend/frame_ring.hpp"
#include "resend/packets_not_sent.hpp"
#include "stages/capture_source.hpp"
#include "wire/rewrite.hpp"

namespace weir::resend {

class ReadAhead {
public:
    struct Config {
        stages::CaptureSource::Config source;
        std::uint32_t loop = 1;
        wire::Rewrite rewrite;
        bool payload_only = false;  ///< UDP payloads for a socket, not whole frames for a device
        std::uint32_t mtu = 0;      ///< of whole frames: IP packets that are longer are not sent
        std::uint16_t port = 0;     ///< of payloads: where they all go; 0: as captured
    };
    /// What became of frames that were rewritten.
    struct RewriteCounts {
        std::uint64_t changed = 0;
        std::uint64_t icrc = 0;
        std::uint64_t icrc_wrong = 0;
        std::uint64_t unreadable = 0;
    };

    /// Opens the files: throws core::RunError. Ring and `stop` must outlive this; `stop` ends it early.
    ReadAhead(const Config& config, FrameRing& ring, const std::atomic<bool>& stop);
    ~ReadAhead() { join(); }
    ReadAhead(const ReadAhead&) = delete;
    ReadAhead& operator=(const ReadAhead&) = delete;
    void start();
    void join();

    /// Records taken from the files, without those outside of the range of time.
    [[nodiscard]] std::uint64_t packets() const noexcept { return packets_.load(std::memory_order_relaxed); }
    [[nodiscard]] const NotSentTally& not_sent() const noexcept { return not_sent_; }
    // After join():
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
    [[nodiscard]] const RewriteCounts& rewritten() const noexcept { return rewritten_; }
    [[nodiscard]] const stages::CaptureSource& source() const noexcept { return source_; }

private:
    void run();
    void take(const stages::CaptureSource::Item& item);
    void take_frame(const stages::CaptureSource::Item& item);
    void take_payload(const stages::CaptureSource::Item& item);
    void put(const FrameRing::Frame& frame, const std::byte* bytes, bool rewrite);

    Config config_;
    FrameRing& ring_;
    const std::atomic<bool>& stop_;
    stages::CaptureSource source_;
    std::atomic<std::uint64_t> packets_{0};
    std::uint64_t bytes_ = 0;
    NotSentTally not_sent_;
    RewriteCounts rewritten_;
    std::thread thread_;
};

}  // namespace weir::resend
