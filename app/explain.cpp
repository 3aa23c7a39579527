#include "command.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <regex>
#include <string_view>

#include "config/run_config.hpp"
#include "config/schema.hpp"
#include "core/error.hpp"
#include "core/nearest.hpp"
#include "observe/counter_sections.hpp"
#include "options/reference.hpp"
#include "terminal.hpp"

namespace weir::app {
namespace {

constexpr std::string_view explain_usage = R"(usage: weir explain [TOPIC|COUNTER...]

Says what a counter of the run report means and what to do when it is not zero. Counters of devices, rings and fill levels are among them. Without a name it lists the topics.

  weir explain
  weir explain events
  weir explain dropped.late
  weir explain dropped.malformed
  weir explain 'dropped.*.bad_icrc'

  --list      the names of all counters
  --all       all topics with all their counters
  --markdown  docs/reference/COUNTERS.md
  --keys      the tables of the configuration, with what each key may be, its default and its meaning
  --schema    the JSON schema of a configuration file
  --page FILE  FILE with its tables of keys as this program has them (docs/reference/CONFIGURATION.md)
  -h, --help  this text
)";

std::size_t columns() {
    return columns_of(STDOUT_FILENO);
}

/// Breaks `text` into lines, each after `indent` spaces.
void print_wrapped(std::string_view text, std::size_t indent) {
    std::cout << wrapped(std::string(indent, ' ') + std::string(text), columns(), 0) << '\n';
}

std::string full_name(const observe::CounterSection& section, std::size_t place) {
    return std::string(section.name) + "." + std::string(section.counters[place].name);
}

void explain_topic(const observe::CounterSection& section) {
    std::cout << section.name << '\n';
    print_wrapped(section.title, 2);
    std::cout << '\n';
    for (const core::CounterInfo& counter : section.counters) {
        std::cout << "  " << counter.name << '\n';
        print_wrapped(counter.help, 6);
    }
}

void explain_all() {
    for (const observe::CounterSection& section : observe::counter_sections()) {
        explain_topic(section);
        std::cout << '\n';
    }
}

/// The topics, one line each: it fits a screen.
void print_overview() {
    std::cout << "weir explain TOPIC, or weir explain COUNTER\n\n";
    for (const observe::CounterSection& section : observe::counter_sections()) {
        const std::string count = std::to_string(section.counters.size());
        std::string line = "  " + std::string(section.name);
        line.resize(20, ' ');
        line += std::string(4 - std::min<std::size_t>(4, count.size()), ' ') + count + "  ";
        for (std::size_t i = 0; i < section.counters.size(); ++i) {
            const std::string name = (i == 0 ? "" : ", ") + std::string(section.counters[i].name);
            if (line.size() + name.size() + 3 > columns()) {
                line += ", …";
                break;
            }
            line += name;
        }
        std::cout << line << '\n';
    }
    std::cout << "\nA part of a name will do: weir explain dropped.malformed. The number is that of\n"
                 "the counters. docs/guides/LOSSES.md goes from what a run said to what to do.\n";
}

std::vector<std::string> full_names() {
    std::vector<std::string> names;
    for (const observe::CounterSection& section : observe::counter_sections())
        for (std::size_t i = 0; i < section.counters.size(); ++i) names.push_back(full_name(section, i));
    return names;
}

void print_counter(const observe::NamedCounter& counter) {
    std::cout << counter.full_name << '\n';
    print_wrapped(counter.info->help, 6);
    std::cout << "      Read on: " << observe::counter_page(counter.full_name) << '\n';
}

/// `name` is a section, or the beginning of the names of several counters.
bool explain_group(const std::string& name) {
    bool found = false;
    for (const observe::CounterSection& section : observe::counter_sections()) {
        if (section.name == name || section.name.starts_with(name + ".")) {
            explain_topic(section);
            found = true;
        }
    }
    if (found) return true;
    const std::string inside = "." + name + ".";
    for (const std::string& full : full_names()) {
        if (("." + full).find(inside) == std::string::npos) continue;
        for (const observe::NamedCounter& counter : observe::find_counters(full)) print_counter(counter);
        found = true;
    }
    return found;
}

void explain_one(const std::string& name) {
    for (const observe::CounterSection& section : observe::counter_sections())
        if (section.name == name) return explain_topic(section);
    const std::vector<observe::NamedCounter> found = observe::find_counters(name);
    for (const observe::NamedCounter& counter : found) print_counter(counter);
    if (!found.empty() || explain_group(name)) return;
    std::vector<std::string> names = full_names();
    for (const observe::CounterSection& section : observe::counter_sections()) names.emplace_back(section.name);
    std::string text = "there is no counter or topic '" + name + "'";
    const std::vector<std::string> near = core::similar_names(name, names);
    for (std::size_t i = 0; i < near.size(); ++i) text += (i == 0 ? "; did you mean " : " or ") + near[i];
    throw core::UsageError(text + " (weir explain lists the topics)");
}

/// Without the links and the emphasis of Markdown.
std::string plain(std::string_view markdown) {
    static const std::regex link(R"(\[([^\]]*)\]\([^)]*\))");
    std::string out = std::regex_replace(std::string(markdown), link, "$1");
    std::erase(out, '`');
    return out;
}

void explain_keys() {
    for (const options::ReferenceTable& table : config::config_reference()) {
        const std::string name = table.name == "top" ? "top level" : table.name;
        std::cout << (table.name == "top" ? "" : "\n") << name << '\n';
        for (const options::Explained& key : table.keys) {
            std::cout << "  " << key.key << '\n';
            print_wrapped(plain(key.kind + "; default: " + key.fallback), 6);
            print_wrapped(plain(key.meaning), 6);
        }
    }
}

std::string text_of(const std::string& file) {
    std::ifstream in(file);
    if (!in) throw core::UsageError("explain: " + file + " cannot be read");
    return {std::istreambuf_iterator<char>(in), {}};
}

int explain_command(const std::vector<std::string>& args) {
    if (args.empty()) print_overview();
    if (args.size() == 2 && args.front() == "--page") {
        std::cout << options::filled_in(text_of(args.back()), config::config_reference());
        return 0;
    }
    for (const std::string& arg : args) {
        if (arg == "--help" || arg == "-h") {
            std::cout << laid_out(explain_usage, columns());
        } else if (arg == "--all") {
            explain_all();
        } else if (arg == "--list") {
            for (const std::string& name : full_names()) std::cout << name << '\n';
        } else if (arg == "--markdown") {
            std::cout << observe::counters_markdown();
        } else if (arg == "--keys") {
            explain_keys();
        } else if (arg == "--schema") {
            std::cout << config::config_schema().dump(2) << '\n';
        } else if (arg.starts_with('-')) {
            throw core::UsageError("explain: unknown option '" + arg + "' (weir explain --help)");
        } else {
            explain_one(arg);
        }
    }
    return 0;
}

}  // namespace

Command explain_entry() {
    return {"explain", "what a counter means, and what to do when it is not zero", explain_command};
}

}  // namespace weir::app
