// What earlier runs left when they were killed or lost power: closed and named while this one goes on, in a thread of
// its own that does not get in the way of the disk.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "config/run_config.hpp"

namespace weir::run {

class LeftoverRuns {
public:
    /// Looks where the sinks of the configuration write, and begins. `out`: --out, which the first of them writes to
    /// instead. The thread inherits the CPUs and the rights of this one.
    LeftoverRuns(const config::RunConfig& config, const std::string& out);
    ~LeftoverRuns() { stop(); }
    LeftoverRuns(const LeftoverRuns&) = delete;
    LeftoverRuns& operator=(const LeftoverRuns&) = delete;

    /// Ends it; there is a line of all that was done. What is not done is left as it was, for the next start.
    void stop();
    /// The run has ended: without regard for its disk until all is done, or until `give_up` says so. stop() then.
    void finish(const std::function<bool()>& give_up);

    struct Line {
        std::string text;
        bool problem = false;
    };
    /// One for each leftover that has been dealt with since the last call.
    [[nodiscard]] std::vector<Line> take_lines();

private:
    struct Leftover {
        const config::SinkConfig* sink = nullptr;
        std::filesystem::path path;
    };
    void work();
    void recover(const Leftover& leftover);
    [[nodiscard]] bool wait_for_turn(std::uint64_t bytes);
    void say(std::string text, bool problem);

    std::vector<Leftover> leftovers_;
    std::mutex mutex_;
    std::condition_variable stopped_;
    bool stop_ = false;
    bool hurry_ = false;
    bool done_ = false;
    std::vector<Line> lines_;
    double seconds_ahead_ = 0;  ///< that reading is ahead of its pace
    std::thread thread_;
};

}  // namespace weir::run
