// What a command tells people beside its output: progress, warnings, why it ended. On standard error, which may fail
// (its reader has left, the terminal has hung up, the disk is full) without the command failing.
#pragma once

#include <fmt/core.h>

#include <exception>
#include <string_view>
#include <utility>

namespace weir::core {

/// As it is, without a line end of its own.
void say_text(std::string_view text) noexcept;

template <class... Args>
void print_stderr(fmt::format_string<Args...> format, Args&&... args) noexcept {
    try {
        say_text(fmt::format(format, std::forward<Args>(args)...));
    } catch (const std::exception&) {  // no memory for the words
    }
}

}  // namespace weir::core
