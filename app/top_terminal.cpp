#include "top_terminal.hpp"

#define NCURSES_NOMACROS
#include <curses.h>

#include <clocale>

#include "core/error.hpp"
#include "core/loaded_library.hpp"

namespace weir::app {

namespace {

struct CursesLibrary {
    core::LoadedLibrary library{"ncurses", "libncursesw.so.6", "libncursesw6"};
    WEIR_LIBRARY_FUNCTION(COLOR_PAIR);
    WEIR_LIBRARY_FUNCTION(addstr);
    WEIR_LIBRARY_FUNCTION(attrset);
    WEIR_LIBRARY_FUNCTION(cbreak);
    WEIR_LIBRARY_FUNCTION(curs_set);
    WEIR_LIBRARY_FUNCTION(endwin);
    WEIR_LIBRARY_FUNCTION(erase);
    WEIR_LIBRARY_FUNCTION(getch);
    WEIR_LIBRARY_FUNCTION(getmaxx);
    WEIR_LIBRARY_FUNCTION(getmaxy);
    WEIR_LIBRARY_FUNCTION(has_colors);
    WEIR_LIBRARY_FUNCTION(init_pair);
    WEIR_LIBRARY_FUNCTION(keypad);
    WEIR_LIBRARY_FUNCTION(move);
    WEIR_LIBRARY_FUNCTION(newterm);
    WEIR_LIBRARY_FUNCTION(noecho);
    WEIR_LIBRARY_FUNCTION(refresh);
    WEIR_LIBRARY_FUNCTION(start_color);
    WEIR_LIBRARY_FUNCTION(timeout);
    WEIR_LIBRARY_FUNCTION(use_default_colors);
    WEIR_LIBRARY_VARIABLE(stdscr);
};

const CursesLibrary& curses() {
    static const CursesLibrary functions;
    return functions;
}

constexpr short pair_good = 1;
constexpr short pair_bad = 2;
constexpr short pair_unknown = 3;

attr_t attributes_of(TopInk ink) {
    const bool colours = curses().has_colors();
    const auto colour = [&](short pair) {
        return colours ? static_cast<attr_t>(curses().COLOR_PAIR(pair)) : attr_t{A_NORMAL};
    };
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
    if (curses().newterm(nullptr, stdout, stdin) == nullptr)
        throw core::RunError("top: this terminal cannot be drawn on (TERM); --once prints one screen as text");
    curses().cbreak();
    curses().noecho();
    curses().keypad(curses().stdscr, TRUE);
    curses().curs_set(0);
    if (curses().has_colors()) {
        curses().start_color();
        curses().use_default_colors();
        curses().init_pair(pair_good, COLOR_CYAN, -1);
        curses().init_pair(pair_bad, COLOR_RED, -1);
        curses().init_pair(pair_unknown, COLOR_YELLOW, -1);
    }
}

TopTerminal::~TopTerminal() {
    curses().endwin();
}

std::size_t TopTerminal::width() const {
    return static_cast<std::size_t>(curses().getmaxx(curses().stdscr));
}

std::size_t TopTerminal::height() const {
    return static_cast<std::size_t>(curses().getmaxy(curses().stdscr));
}

void TopTerminal::draw(const TopScreen& screen) {
    curses().erase();
    for (std::size_t row = 0; row < screen.lines.size() && row < height(); ++row) {
        curses().move(static_cast<int>(row), 0);
        for (const TopSpan& span : screen.lines[row]) {
            curses().attrset(static_cast<int>(attributes_of(span.ink)));
            curses().addstr(span.text.c_str());
        }
    }
    curses().attrset(A_NORMAL);
    curses().refresh();
}

TopKey TopTerminal::key(std::chrono::milliseconds patience) {
    curses().timeout(static_cast<int>(patience.count()));
    switch (curses().getch()) {
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
