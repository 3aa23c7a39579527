#include "top_terminal.hpp"

#define NCURSES_NOMACROS
#include <curses.h>

#include <clocale>

#include "core/error.hpp"

namespace weir::app {

namespace {

constexpr short pair_good = 1;
constexpr short pair_bad = 2;
constexpr short pair_unknown = 3;

attr_t attributes_of(TopInk ink) {
    const bool colours = ::has_colors();
    const auto colour = [&](short pair) { return colours ? static_cast<attr_t>(COLOR_PAIR(pair)) : attr_t{A_NORMAL}; };
    switch (ink) {
        case TopInk::plain:
            return A_NORMAL;
        case TopInk::strong:
            return A_BOLD;
        case TopInk::dim:
            return A_NORMAL;
        case TopInk::good:
            return A_BOLD | colour(pair_good);
        case TopInk::bad:
            return A_BOLD | colour(pair_bad);
        case TopInk::alarm:
            return A_BOLD | A_REVERSE | colour(pair_bad);
        case TopInk::unknown:
            return A_BOLD | colour(pair_unknown);
    }
    return A_NORMAL;
}

}  // namespace

TopTerminal::TopTerminal() {
    std::setlocale(LC_ALL, "");
    if (::newterm(nullptr, stdout, stdin) == nullptr)
        throw core::RunError("top: this terminal cannot be drawn on (TERM); --once prints one screen as text");
    ::cbreak();
    ::noecho();
    ::keypad(stdscr, TRUE);
    ::curs_set(0);
    if (::has_colors()) {
        ::start_color();
        ::use_default_colors();
        ::init_pair(pair_good, COLOR_CYAN, -1);
        ::init_pair(pair_bad, COLOR_RED, -1);
        ::init_pair(pair_unknown, COLOR_YELLOW, -1);
    }
}

TopTerminal::~TopTerminal() {
    ::endwin();
}

std::size_t TopTerminal::width() const {
    return static_cast<std::size_t>(::getmaxx(stdscr));
}

std::size_t TopTerminal::height() const {
    return static_cast<std::size_t>(::getmaxy(stdscr));
}

void TopTerminal::draw(const TopScreen& screen) {
    ::erase();
    for (std::size_t row = 0; row < screen.lines.size() && row < height(); ++row) {
        ::move(static_cast<int>(row), 0);
        for (const TopSpan& span : screen.lines[row]) {
            ::attrset(static_cast<int>(attributes_of(span.ink)));
            ::addstr(span.text.c_str());
        }
    }
    ::attrset(A_NORMAL);
    ::refresh();
}

TopKey TopTerminal::key(std::chrono::milliseconds patience) {
    ::timeout(static_cast<int>(patience.count()));
    switch (::getch()) {
        case 'q':
        case 'Q':
            return TopKey::quit;
        case 's':
        case 'S':
            return TopKey::sort;
        case '?':
        case 'h':
            return TopKey::help;
        case KEY_UP:
            return TopKey::up;
        case KEY_DOWN:
            return TopKey::down;
        case KEY_PPAGE:
            return TopKey::page_up;
        case KEY_NPAGE:
            return TopKey::page_down;
        case KEY_HOME:
            return TopKey::home;
        case KEY_RESIZE:
            return TopKey::resized;
        default:
            return TopKey::none;
    }
}

}  // namespace weir::app
