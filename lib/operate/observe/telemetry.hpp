// DPDK's telemetry: a running weir answers `dpdk-telemetry.py`, and every other client of that protocol, under /weir/.
// The control thread makes the answers from published counters; lcores notice nothing.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string_view>

#include "observe/run_observer.hpp"

struct rte_tel_data;

namespace weir::observe {

/// One per process, after EAL has started with telemetry.
class Telemetry final : public RunObserver {
public:
    /// Registers /weir/ledger, /weir/sources, /weir/ports, /weir/lcores, /weir/rings and /weir/events. Throws
    /// core::RunError.
    Telemetry();
    ~Telemetry() override;

    /// Another run begins: what was said last of the one before is over.
    void begin(const RunFacts& facts, const RunMoment& moment) override;
    /// Makes an answer if somebody waits for one.
    void look(const RunMoment& moment) override;
    /// "/weir/record", if somebody has asked by that.
    [[nodiscard]] std::string_view take_record_request() noexcept override;
    /// What is said from now on, to the end of the program.
    void counted(const RunMoment& moment, const Ledger& ledger, const Verdict& verdict) override;

private:
    static int answer(const char* command, const char* parameters, rte_tel_data* data);
    int answer_part(const char* part, const char* parameters, rte_tel_data* data);
    void publish(nlohmann::json snapshot, bool final);

    std::atomic<bool> record_{false};
    std::mutex mutex_;
    std::condition_variable published_;
    nlohmann::json snapshot_;  ///< "ledger", "sources", ...
    std::uint64_t generation_ = 0;
    bool wanted_ = false;
    bool final_ = false;
    bool closing_ = false;
};

}  // namespace weir::observe
