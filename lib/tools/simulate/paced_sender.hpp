// The loop between simulator and target: sends what is due in batches, waits for what is not, and stops when asked.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <functional>

#include "simulate/frame_target.hpp"
#include "simulate/pacer.hpp"
#include "simulate/simulator.hpp"

namespace weir::simulate {

class PacedSender {
public:
    struct Config {
        Pacer::Config pace;  ///< without a rate: as fast as the target takes frames; a capture is stamped for 10 Gb/s
        bool live = true;    ///< false: time is that of the stamps, nothing waits
        double duration_s = 0;                            ///< stop after this; 0: never. Live only
        std::function<void(double seconds)> on_progress;  ///< about once a second; live only
    };
    struct Result {
        Pacer pacer{{}};
        std::uint64_t refused = 0;  ///< frames that were made and that the target did not take any more
        double seconds = 0;         ///< that it took; for a capture what the stamps span
        bool interrupted = false;   ///< by `stop`
    };
    /// Stamps of a capture begin here, so that the same configuration makes the same file.
    static constexpr core::TimeNs capture_start_ns = 1'700'000'000 * core::ns_per_s;

    PacedSender(Simulator& simulator, FrameTarget& target, const Config& config, const std::atomic<bool>& stop);

    /// Sends everything, until the simulator is at its end, the time is over, or `stop` is set; then the event that has
    /// begun is finished without waiting. Throws core::RunError when the target fails.
    Result send();

private:
    void stop_if_asked(std::int64_t now_ns);
    void wait(core::TimeNs due_ns, std::int64_t now_ns);
    void flush();
    [[nodiscard]] std::int64_t elapsed_ns() const;

    Simulator& simulator_;
    FrameTarget& target_;
    Config config_;
    const std::atomic<bool>& stop_;
    Result result_;
    std::chrono::steady_clock::time_point start_;
    std::array<OutgoingFrame, FrameTarget::slots> batch_{};
    std::uint32_t filled_ = 0;
    std::uint32_t sent_ = 0;
    bool stopped_ = false;
};

}  // namespace weir::simulate
