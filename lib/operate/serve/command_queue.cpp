#include "serve/command_queue.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "pipeline/wall_clock.hpp"
#include "serve/time_text.hpp"

namespace weir::serve {

namespace {

constexpr std::size_t text_bytes_max = 4096;

bool is_text(const nlohmann::json& value) {
    return value.is_string() && value.get_ref<const std::string&>().size() <= text_bytes_max;
}

web::Controls::Outcome put(CommandQueue::NextRun& next, std::string_view path, const nlohmann::json& value) {
    if (path == "config/duration_s") {
        if (!value.is_null() && !(value.is_number() && value.get<double>() >= 0 && value.get<double>() < 1e9))
            return {400, "config/duration_s: accepted: a number of seconds, or 0 for no limit"};
        const double seconds = value.is_null() ? 0 : value.get<double>();
        next.duration_s = seconds > 0 ? std::optional(seconds) : std::nullopt;
    } else if (path == "config/events") {
        if (!value.is_null() && !value.is_number_unsigned())
            return {400, "config/events: accepted: a whole number, or 0 for no limit"};
        const std::uint64_t events = value.is_null() ? 0 : value.get<std::uint64_t>();
        next.events = events > 0 ? std::optional(events) : std::nullopt;
    } else if (path == "config/comment") {
        if (!value.is_null() && !is_text(value))
            return {400, fmt::format("config/comment: accepted: a text of at most {} bytes", text_bytes_max)};
        next.comment = value.is_null() ? "" : value.get<std::string>();
    } else if (path == "config/run_number") {
        constexpr std::uint32_t most = UINT32_MAX - 2;
        if (!value.is_null() && !(value.is_number_unsigned() && value.get<std::uint64_t>() <= most))
            return {
                400,
                fmt::format("config/run_number: accepted: a whole number up to {}, or 0 for the one that comes", most)};
        const std::uint32_t number = value.is_null() ? 0 : value.get<std::uint32_t>();
        next.run_number = number > 0 ? std::optional(number) : std::nullopt;
    } else if (path == "config/without") {
        if (!value.is_null() && !is_text(value))
            return {400, "config/without: accepted: a text, the names of nodes with spaces between them"};
        next.without = value.is_null() ? "" : value.get<std::string>();
    } else {
        return {404, fmt::format("{} cannot be set; accepted: config/duration_s, config/events, config/comment, "
                                 "config/run_number, config/without",
                                 path.substr(0, 64))};
    }
    return {};
}

/// "config/duration_s = 60, for the next run and those after it"
std::string set_text(std::span<const CommandQueue::Value> values) {
    std::string text;
    bool only_next = false;
    for (const auto& [path, value] : values) {
        text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", path, value.dump());
        only_next |= path == "config/run_number" || path == "config/without";
    }
    if (only_next && values.size() == 1) return text + ", for the next run";
    return text.empty() ? text : text + ", for the next run and those after it, until it is set anew or weir ends";
}

}  // namespace

/// Whether it may be asked for. One at a time; only giving up goes past another one.
bool CommandQueue::is_free(Command command) const {
    if (!is_allowed(state_, command, records_) && !(command == Command::abort && under_way_)) return false;
    return command == Command::abort ? !abort_ : !asked_ && !under_way_;
}

std::string CommandQueue::refusal(Command command) const {
    if (asked_ || under_way_) {
        const Command busy = under_way_ ? *under_way_ : *asked_;
        return fmt::format("{} is under way", name_of(busy));
    }
    std::string allowed;
    for (const Command other : commands())
        if (is_free(other)) allowed += fmt::format("{}{}", allowed.empty() ? "" : ", ", name_of(other));
    const bool lacks_recorder = command == Command::flight_record && !records_;
    return fmt::format("{} is not possible while {}{}; allowed: {}", name_of(command), name_of(state_),
                       lacks_recorder ? ", and no sink of kind \"pcapng\" is configured" : "",
                       allowed.empty() ? "nothing" : allowed);
}

web::Controls::Outcome CommandQueue::apply(std::span<const Value> values, std::string_view command) {
    Outcome outcome = apply_all(values, command);
    if (outcome.status < 300 && changed_) changed_();
    return outcome;
}

/// Under one lock: nobody starts a run between two of them.
web::Controls::Outcome CommandQueue::apply_all(std::span<const Value> values, std::string_view name) {
    const std::optional<Command> command = command_of(name);
    if (!name.empty() && !command) return {404, fmt::format("there is no command \"{}\"", name.substr(0, 64))};
    const std::lock_guard lock(mutex_);
    NextRun next = next_;
    for (const auto& [path, value] : values)
        if (Outcome wrong = put(next, path, value); wrong.status >= 300) return wrong;
    Outcome outcome = command ? accept(*command) : Outcome{200, set_text(values)};
    if (outcome.status < 300) next_ = std::move(next);
    return outcome;
}

web::Controls::Outcome CommandQueue::accept(Command command) {
    if (!is_free(command)) return {409, refusal(command)};
    if (command == Command::abort) abort_ = true;
    // Until it is taken the state is idle: whoever asked must not read why an earlier run could not begin.
    if (command == Command::start) error_.clear();
    if (command != Command::abort || !asked_) asked_ = command;
    last_ = {std::string(name_of(command)), time_text(pipeline::wall_ns()), false, "", ""};
    return {202, fmt::format("{}: under way", name_of(command))};
}

State CommandQueue::state() const {
    const std::lock_guard lock(mutex_);
    return state_;
}

CommandQueue::NextRun CommandQueue::next_run() const {
    const std::lock_guard lock(mutex_);
    return next_;
}

void CommandQueue::describe(nlohmann::json& document) const {
    const std::lock_guard lock(mutex_);
    const double since_s = std::chrono::duration<double>(Clock::now() - since_).count();
    document["status"] = {{"state", name_of(state_)}, {"mode", "serve"}, {"since_s", since_s}, {"error", error_}};
    document["status"]["next_run"] = next_.run_number.value_or(coming_number_);
    nlohmann::json& command = document["command"];
    command = {{"allowed", nlohmann::json::array()}, {"execute", last_.done ? "" : last_.command}};
    for (const Command each : commands()) {
        const bool free = is_free(each);
        if (free) command["allowed"].push_back(name_of(each));
        command[std::string(name_of(each))] = {{"allowed", free},
                                               {"execute", !last_.done && last_.command == name_of(each)}};
    }
    command["last"] = {{"command", last_.command},
                       {"accepted", last_.accepted},
                       {"done", last_.done},
                       {"message", last_.message},
                       {"error", last_.error}};
    nlohmann::json& config = document["config"];
    // Clients that make variables of the tree, as EPICS has them, want a number also where there is no limit.
    config = {{"duration_s", next_.duration_s.value_or(0)},
              {"events", next_.events.value_or(0)},
              {"comment", next_.comment},
              {"run_number", next_.run_number.value_or(0)},
              {"without", next_.without}};
}

std::optional<Command> CommandQueue::take() {
    const std::lock_guard lock(mutex_);
    if (!asked_) return std::nullopt;
    under_way_ = asked_;
    return std::exchange(asked_, std::nullopt);
}

bool CommandQueue::wants_abort() const {
    const std::lock_guard lock(mutex_);
    return abort_;
}

CommandQueue::NextRun CommandQueue::take_next_run() {
    const std::lock_guard lock(mutex_);
    NextRun next = next_;
    next_.run_number.reset();
    next_.without.clear();
    return next;
}

void CommandQueue::set_coming_number(std::uint32_t number) {
    const std::lock_guard lock(mutex_);
    coming_number_ = number;
}

void CommandQueue::done(Command command, std::string message, std::string error) {
    const std::lock_guard lock(mutex_);
    under_way_.reset();
    if (command == Command::abort) abort_ = false;
    if (last_.command != name_of(command)) return;  // another one has been asked for since
    last_.done = true;
    last_.message = std::move(message);
    last_.error = std::move(error);
}

void CommandQueue::move_to(State state) {
    const std::lock_guard lock(mutex_);
    if (state_ != state) since_ = Clock::now();
    state_ = state;
}

void CommandQueue::set_error(std::string error) {
    const std::lock_guard lock(mutex_);
    error_ = std::move(error);
}

}  // namespace weir::serve
