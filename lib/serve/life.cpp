#include "serve/life.hpp"

#include <algorithm>
#include <array>

namespace weir::serve {

namespace {

constexpr std::array<std::string_view, 4> state_names{"idle", "arming", "running", "stopping"};
constexpr std::array all_commands{Command::start,    Command::stop,          Command::new_run,
                                  Command::snapshot, Command::flight_record, Command::abort};
constexpr std::array<std::string_view, all_commands.size()> command_names{"start",    "stop",          "new_run",
                                                                          "snapshot", "flight_record", "abort"};

}  // namespace

std::string_view name_of(State state) noexcept {
    return state_names[static_cast<std::size_t>(state)];
}

std::string_view name_of(Command command) noexcept {
    return command_names[static_cast<std::size_t>(command)];
}

std::span<const Command> commands() noexcept {
    return all_commands;
}

std::optional<Command> command_of(std::string_view name) noexcept {
    const auto* const found = std::ranges::find(command_names, name);
    if (found == command_names.end()) return std::nullopt;
    return all_commands[static_cast<std::size_t>(found - command_names.begin())];
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

std::optional<State> after(State state, Happening happening) noexcept {
    switch (happening) {
        case Happening::armed:
            if (state == State::arming) return State::running;
            break;
        case Happening::failed:
            if (state == State::arming) return State::idle;
            break;
        case Happening::ending:
            if (state == State::running || state == State::stopping) return State::stopping;
            break;
        case Happening::closed:
            if (state == State::stopping) return State::idle;
            break;
    }
    return std::nullopt;
}

}  // namespace weir::serve
