// The states of `weir serve`, and what leads from one to the next. docs/guides/SERVE.md has the same table for people.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace weir::serve {

enum class State : std::uint8_t {
    idle,      ///< devices are up, nothing is taken
    arming,    ///< files are opened and memory is made for a run
    running,   ///< packets are taken
    stopping,  ///< no more are taken; what is under way is written
};

enum class Command : std::uint8_t {
    start,
    stop,
    new_run,        ///< ends the run and starts the next
    snapshot,       ///< saves the account so far
    flight_record,  ///< saves the packets that the flight recorder has
    abort,          ///< ends the run, or its start, without waiting for anybody
};

/// What happens of itself.
enum class RunEvent : std::uint8_t {
    armed,   ///< the run has started
    failed,  ///< it could not be started
    ending,  ///< it has come to its end: a limit, its input, its disk
    closed,  ///< everything is written
};

[[nodiscard]] std::string_view name_of(State state) noexcept;
[[nodiscard]] std::string_view name_of(Command command) noexcept;
/// What it does, in a few words: "begins a run".
[[nodiscard]] std::string_view sentence_of(Command command) noexcept;
/// In the order of the API.
[[nodiscard]] std::span<const Command> commands() noexcept;
/// Nothing if there is no such command.
[[nodiscard]] std::optional<Command> command_of(std::string_view name) noexcept;

/// Whether the command means something in this state. `records`: the run has a flight recorder.
[[nodiscard]] bool is_allowed(State state, Command command, bool records) noexcept;

/// Where an allowed command leads; the same state where it changes none.
[[nodiscard]] State after(State state, Command command) noexcept;
/// Nothing: it cannot happen in this state.
[[nodiscard]] std::optional<State> after(State state, RunEvent event) noexcept;

}  // namespace weir::serve
