// DPDK's telemetry: a running weir answers `dpdk-telemetry.py`, and every other client of that protocol, under /weir/.
// The control thread makes the answers from published counters; lcores notice nothing.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <nlohmann/json.hpp>

#include "observe/diagnosis.hpp"
#include "observe/ledger.hpp"
#include "observe/watch.hpp"

struct rte_tel_data;

namespace weir::pipeline {
class Pipeline;
}  // namespace weir::pipeline

namespace weir::observe {

/// One per process, after EAL has started with telemetry.
class Telemetry {
public:
    /// Registers /weir/ledger, /weir/sources, /weir/ports, /weir/lcores, /weir/rings and /weir/events. Throws
    /// core::RunError.
    Telemetry();
    ~Telemetry();
    Telemetry(const Telemetry&) = delete;
    Telemetry& operator=(const Telemetry&) = delete;

    /// Another run begins: what was said last of the one before is over.
    void begin();
    /// Makes an answer if somebody waits for one. On the control thread, every few milliseconds.
    void serve(const pipeline::Pipeline& pipeline, const Watch& watch, double seconds);
    /// Somebody has asked for what the flight recorder has, since the last call.
    [[nodiscard]] bool take_record_request() noexcept { return record_.exchange(false); }
    /// What is said from now on, to the end of the program.
    void finish(const pipeline::Pipeline& pipeline, const Watch& watch, const Ledger& ledger, double seconds);

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
