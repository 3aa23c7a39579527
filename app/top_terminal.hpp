// A terminal that `weir top` draws on, by ncurses. Its header defines common words as macros, so nobody else includes
// it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "top_screen.hpp"

namespace weir::app {

enum class TopKey : std::uint8_t { none, quit, sort, up, down, page_up, page_down, home, help, resized };

/// One at a time. Puts the terminal back when it ends, also by a signal.
class TopTerminal {
public:
    /// Throws core::RunError if the terminal is none that can be drawn on.
    TopTerminal();
    ~TopTerminal();
    TopTerminal(const TopTerminal&) = delete;
    TopTerminal& operator=(const TopTerminal&) = delete;

    [[nodiscard]] std::size_t width() const;
    [[nodiscard]] std::size_t height() const;
    void draw(const TopScreen& screen);
    /// The next key; none if there is none in this time.
    [[nodiscard]] TopKey key(std::chrono::milliseconds patience);
};

}  // namespace weir::app
