#include "run/leftover_runs.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "config/sinks/entry.hpp"
#include "core/error.hpp"
#include "store/leftovers.hpp"
#include "store/run_path.hpp"

namespace weir::run {

LeftoverRuns::LeftoverRuns(const config::RunConfig& config, const std::string& out) {
    bool elsewhere = !out.empty();
    for (const config::SinkConfig& sink : config.sinks) {
        if (!sink.has_path() || std::exchange(elsewhere, false) || entry_of(sink).recover == nullptr) continue;
        for (std::filesystem::path& path : store::find_leftovers(sink.path, config.name, config.node))
            leftovers_.push_back({&sink, std::move(path)});
    }
    if (!leftovers_.empty()) thread_ = std::thread(&LeftoverRuns::work, this);
}

void LeftoverRuns::stop() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    stopped_.notify_all();
    if (thread_.joinable()) thread_.join();
}

void LeftoverRuns::finish(const std::function<bool()>& give_up) {
    if (thread_.joinable()) {
        std::unique_lock lock(mutex_);
        hurry_ = true;
        stopped_.notify_all();
        while (!done_ && !give_up()) stopped_.wait_for(lock, std::chrono::milliseconds(20));
    }
    stop();
}

std::vector<LeftoverRuns::Line> LeftoverRuns::take_lines() {
    const std::lock_guard lock(mutex_);
    return std::exchange(lines_, {});
}

void LeftoverRuns::say(std::string text, bool problem) {
    const std::lock_guard lock(mutex_);
    lines_.push_back({std::move(text), problem});
}

void LeftoverRuns::work() {
    constexpr int nice = 10;
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), nice);
    for (const Leftover& leftover : leftovers_) {
        {
            const std::lock_guard lock(mutex_);
            if (stop_) return;
        }
        recover(leftover);
    }
    const std::lock_guard lock(mutex_);
    done_ = true;
    stopped_.notify_all();
}

void LeftoverRuns::recover(const Leftover& leftover) {
    const std::filesystem::path hidden = store::hidden_path(leftover.path);
    try {
        const auto done = entry_of(*leftover.sink).recover(leftover.path, [this](std::uint64_t bytes) {
            return wait_for_turn(bytes);
        });
        if (!done.has_value()) return;  // somebody writes to it, or the run is over
        if (done->path.empty())
            say(fmt::format("{} was left by a run that was interrupted, held nothing, and is gone", hidden.string()),
                false);
        else
            say(fmt::format("recovered {} from a run that was interrupted: {}", done->path.string(), done->holds),
                false);
    } catch (const std::exception& error) {
        say(fmt::format("{} was left by a run that was interrupted, and cannot be closed: {}; it stays as it is",
                        hidden.string(), error.what()),
            true);
    }
}

/// Slower than any disk that a run is worth writing to, so that most of it stays for the run.
bool LeftoverRuns::wait_for_turn(std::uint64_t bytes) {
    constexpr double bytes_per_second = 256e6;
    constexpr double ahead_max_s = 0.05;
    seconds_ahead_ += static_cast<double>(bytes) / bytes_per_second;
    std::unique_lock lock(mutex_);
    if (hurry_ || seconds_ahead_ < ahead_max_s) return !stop_;
    stopped_.wait_for(lock, std::chrono::duration<double>(seconds_ahead_), [this] { return stop_ || hurry_; });
    seconds_ahead_ = 0;
    return !stop_;
}

}  // namespace weir::run
