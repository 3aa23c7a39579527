// Where requests of others meet the control thread: what the state allows is taken, one at a time, and what has become
// of it can be asked.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "serve/life.hpp"
#include "web/controls.hpp"

namespace weir::serve {

class CommandQueue : public web::Controls {
public:
    /// What may be set for the next run.
    struct NextRun {
        std::optional<double> duration_s;
        std::optional<std::uint64_t> events;
        std::string comment;                      ///< goes into the manifest and the run log
        std::optional<std::uint32_t> run_number;  ///< of the next run only; nothing: the one that comes
        std::string without;                      ///< of the next run only: names of nodes of its cluster
    };

    /// `records`: the configuration has a flight recorder. `changed` is called when a command has been taken or
    /// something was set, by the thread that asked: whoever asks next is to see it.
    explicit CommandQueue(bool records, std::function<void()> changed = {})
        : records_(records), changed_(std::move(changed)) {}

    // Any thread.

    /// Values are "config/duration_s", "config/events", "config/comment", "config/run_number",
    /// "config/without"; 0, "" or null takes one back. 200: they are set, and there is no command; 202: the control
    /// thread will do it; 400: no such value; 404: there is no such command or nothing to set; 409: not in this state,
    /// or another command is under way.
    [[nodiscard]] Outcome apply(std::span<const Value> values, std::string_view command) override;

    [[nodiscard]] State state() const;
    [[nodiscard]] NextRun next_run() const;
    /// "status", "command" and "config" of the document.
    void describe(nlohmann::json& document) const;

    // The control thread.

    /// What has been asked for and is not done yet.
    [[nodiscard]] std::optional<Command> take();
    /// Somebody asks for the run, or its start, to be given up; also without take().
    [[nodiscard]] bool wants_abort() const;
    /// What is set for the run that begins now. Its number and the nodes that it goes without are for none after it.
    [[nodiscard]] NextRun take_next_run();
    /// The number that the next run gets by itself; shown as "status/next_run". 0: nothing counts runs here.
    void set_coming_number(std::uint32_t number);
    /// The command has been done, or why not.
    void done(Command command, std::string message, std::string error = {});
    void move_to(State state);
    /// What is shown as the service's trouble, until the next start; empty: none.
    void set_error(std::string error);

private:
    using Clock = std::chrono::steady_clock;

    struct Last {
        std::string command;
        std::string accepted;  ///< when
        bool done = true;
        std::string message;
        std::string error;
    };

    [[nodiscard]] Outcome apply_all(std::span<const Value> values, std::string_view command);
    [[nodiscard]] Outcome accept(Command command);
    [[nodiscard]] bool is_free(Command command) const;
    [[nodiscard]] std::string refusal(Command command) const;

    const bool records_;
    const std::function<void()> changed_;
    mutable std::mutex mutex_;
    State state_ = State::idle;
    Clock::time_point since_ = Clock::now();
    std::optional<Command> asked_;      ///< nobody has taken it yet
    std::optional<Command> under_way_;  ///< taken and not done
    bool abort_ = false;
    Last last_;
    std::string error_;
    NextRun next_;
    std::uint32_t coming_number_ = 0;
};

}  // namespace weir::serve
