#include "explain.hpp"

#include <algorithm>
#include <iostream>
#include <string_view>

#include "core/counters_text.hpp"
#include "core/error.hpp"

namespace weir::app {
namespace {

constexpr std::string_view usage =
    "usage: weir explain [COUNTER...]\n"
    "  Says what a counter of the run report means and what to do when it is not zero.\n"
    "  Counters of devices, rings and fill levels are among them. `*` stands for anything.\n"
    "  Without a name it explains all. --list prints the names; --markdown prints docs/COUNTERS.md.\n"
    "  weir explain dropped.late\n"
    "  weir explain events.dropped.no_room\n"
    "  weir explain 'dropped.malformed.*'\n"
    "  weir explain device.missed\n";

/// Breaks `text` into lines of at most `width` characters, each after `indent` spaces.
void print_wrapped(std::string_view text, std::size_t indent, std::size_t width) {
    const std::string margin(indent, ' ');
    while (!text.empty()) {
        std::size_t end = text.size();
        if (end > width) {
            end = text.rfind(' ', width);
            if (end == std::string_view::npos) end = text.find(' ');
            if (end == std::string_view::npos) end = text.size();
        }
        std::cout << margin << text.substr(0, end) << '\n';
        text.remove_prefix(end < text.size() ? end + 1 : end);
    }
}

void explain_all() {
    for (const core::CounterSection& section : core::counter_sections()) {
        std::cout << section.name << '\n';
        print_wrapped(section.title, 2, 90);
        std::cout << '\n';
        for (std::size_t i = 0; i < section.count; ++i) {
            std::cout << "  " << section.begin[i].name << '\n';
            print_wrapped(section.begin[i].help, 6, 90);
        }
        std::cout << '\n';
    }
}

/// Every counter with its section in front.
std::vector<std::string> full_names() {
    std::vector<std::string> names;
    for (const core::CounterSection& section : core::counter_sections())
        for (std::size_t i = 0; i < section.count; ++i)
            names.push_back(std::string(section.name) + "." + std::string(section.begin[i].name));
    return names;
}

void explain_one(const std::string& name) {
    const std::vector<core::NamedCounter> found = core::find_counters(name);
    for (const core::NamedCounter& counter : found) {
        std::cout << counter.full_name << '\n';
        print_wrapped(counter.info->help, 6, 90);
        std::cout << "      Read on: " << core::counter_page(counter.full_name) << '\n';
    }
    if (!found.empty()) return;
    std::vector<std::string> names;
    for (const std::string& full : full_names()) {
        names.push_back(full);
        names.push_back(full.substr(full.find('.') + 1));
    }
    std::ranges::sort(names);
    names.erase(std::unique(names.begin(), names.end()), names.end());
    std::string text = "there is no counter '" + name + "'";
    const std::vector<std::string> near = core::closest(name, names, 4 + name.size() / 4);
    for (std::size_t i = 0; i < near.size(); ++i) text += (i == 0 ? "; did you mean " : " or ") + near[i];
    throw core::UsageError(text + " (weir explain lists them)");
}

}  // namespace

int explain_command(const std::vector<std::string>& args) {
    if (args.empty()) explain_all();
    for (const std::string& arg : args) {
        if (arg == "--help" || arg == "-h") {
            std::cout << usage;
        } else if (arg == "--list") {
            for (const std::string& name : full_names()) std::cout << name << '\n';
        } else if (arg == "--markdown") {
            std::cout << core::counters_markdown();
        } else if (arg.starts_with('-')) {
            throw core::UsageError("explain: unknown option '" + arg + "' (weir explain --help)");
        } else {
            explain_one(arg);
        }
    }
    return 0;
}

}  // namespace weir::app
