#include "serve/life.hpp"

#include <algorithm>
#include <array>

namespace weir::serve {

namespace {

constexpr std::array<std::string_view, 4> state_names{"idle", "arming", "running", "stopping"};
struct CommandText {
    std::string_view name;
    std::string_view sentence;
};

constexpr std::array all_commands{Command::start,    Command::stop,          Command::new_run,
                                  Command::snapshot, Command::flight_record, Command::abort};
/// By command: the only list of them. The API, `weir ctl` and its help are made of it.
constexpr std::array<CommandText, all_commands.size()> command_texts{{
    {"start", "begins a run"},
    {"stop", "ends it, and waits until everything is written"},
    {"new_run", "ends it, and begins the next"},
    {"snapshot", "saves the account so far"},
    {"flight_record", "saves the packets that the flight recorder has"},
    {"abort", "ends the run, or its start, without waiting for what is under way"},
}};

}  // namespace

std::string_view name_of(State state) noexcept {
    return state_names[static_cast<std::size_t>(state)];
}

std::string_view name_of(Command command) noexcept {
    return command_texts[static_cast<std::size_t>(command)].name;
}

std::string_view sentence_of(Command command) noexcept {
    return command_texts[static_cast<std::size_t>(command)].sentence;
}

std::span<const Command> commands() noexcept {
    return all_commands;
}

std::optional<Command> command_of(std::string_view name) noexcept {
    const auto* const found = std::ranges::find(command_texts, name, &CommandText::name);
    if (found == command_texts.end()) return std::nullopt;
    return all_commands[static_cast<std::size_t>(found - command_texts.begin())];
}

bool is_allowed(State state, Command command, bool records) noexcept {
    switch (command) {
        case Command::start:
            return state == State::idle;
        case Command::stop:
        case Command::new_run:
        case Command::snapshot:
            return state == State::running;
        case Command::flight_record:
            return state == State::running && records;
        case Command::abort:
            return state != State::idle;
    }
    return false;
}

State after(State state, Command command) noexcept {
    switch (command) {
        case Command::start:
            return State::arming;
        case Command::stop:
        case Command::new_run:
            return State::stopping;
        case Command::abort:
            return state == State::running ? State::stopping : state;
        case Command::snapshot:
        case Command::flight_record:
            break;
    }
    return state;
}

std::optional<State> after(State state, RunEvent event) noexcept {
    switch (event) {
        case RunEvent::armed:
            if (state == State::arming) return State::running;
            break;
        case RunEvent::failed:
            if (state == State::arming) return State::idle;
            break;
        case RunEvent::ending:
            if (state == State::running || state == State::stopping) return State::stopping;
            break;
        case RunEvent::closed:
            if (state == State::stopping) return State::idle;
            break;
    }
    return std::nullopt;
}

}  // namespace weir::serve
