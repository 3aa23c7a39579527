#include "top_screen.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "text_columns.hpp"
#include "watch_numbers.hpp"
#include "watch_verdict.hpp"

namespace weir::app {

namespace {

using Document = nlohmann::json;

constexpr std::size_t sources_at_once = 16;
constexpr double silent_after_s = 5;

/// Breaks text between words; never more than `most` lines.
std::vector<std::string> folded(const std::string& text, std::size_t width, std::size_t most) {
    std::vector<std::string> lines;
    std::string rest = text;
    while (columns_in(rest) > width && lines.size() + 1 < most) {
        std::size_t at = rest.rfind(' ', width);
        if (at == std::string::npos || at == 0) break;
        lines.push_back(rest.substr(0, at));
        rest.erase(0, at + 1);
    }
    lines.push_back(cut_to(rest, width));
    return lines;
}

/// "[#####//...]": what is busy, what waits, of `columns` in all.
std::string top_bar(double busy, double waits, std::size_t columns) {
    const std::size_t inner = columns - 2;
    const auto cells = [&](double part) {
        return static_cast<std::size_t>(std::lround(std::clamp(part, 0.0, 1.0) * static_cast<double>(inner)));
    };
    const std::size_t full = cells(busy);
    const std::size_t waiting = std::min(inner - full, cells(waits));
    return "[" + std::string(full, '#') + std::string(waiting, '/') + std::string(inner - full - waiting, '.') + "]";
}

double fill_of(const Document& level) {
    const double size = watch_number(level, "/size");
    return size > 0 ? watch_number(level, "/used") / size : 0;
}

/// Puts the parts of a screen together; each function adds its lines.
class TopPage {
public:
    TopPage(const Document& document, const TopView& view) : document_(document), view_(view) {}

    TopScreen make() {
        head();
        if (view_.help) {
            help();
        } else {
            where();
            rates();
            losses();
            reasons();
            stages();
            levels();
            sinks();
            sources();
        }
        foot();
        return std::move(screen_);
    }

private:
    void add(TopLine line) {
        fit_to(line, view_.width);
        screen_.lines.push_back(std::move(line));
    }

    /// As much of a part as may be shown: all, where the screen is high.
    [[nodiscard]] std::size_t most(std::size_t on_small, std::size_t on_large) const {
        constexpr std::size_t large = 40;
        return view_.height == 0 ? 1000 : view_.height >= large ? on_large : on_small;
    }

    void head() {
        std::string left = watch_words(document_, "/name");
        if (const std::string host = watch_words(document_, "/host"); !host.empty()) left += " on " + host;
        std::string right = watch_words(document_, "/status/state");
        if (watch_value(document_, "/run").is_object())
            right += fmt::format("  run {}  {}", watch_words(document_, "/run/number"),
                                 watch_duration(watch_value(document_, "/run/seconds")));
        const std::size_t room = view_.width - std::min(view_.width, columns_in(right) + 2);
        add({{padded(left, room), TopInk::strong}, {"  " + right, TopInk::plain}});
        verdict();
    }

    void verdict() {
        const WatchVerdict verdict = watch_verdict(document_);
        if (!view_.trouble.empty()) {
            add({{fmt::format("?? Not known: last heard {} ago", watch_duration(view_.heard_s_ago)), TopInk::alarm}});
            add({{fmt::format("   It was: {}. {}", verdict.headline, view_.trouble), TopInk::plain}});
            return;
        }
        using Level = WatchVerdict::Level;
        const auto [sign, ink] = verdict.level == Level::ok        ? std::pair("ok ", TopInk::good)
                                 : verdict.level == Level::losing  ? std::pair("!! ", TopInk::alarm)
                                 : verdict.level == Level::lost    ? std::pair("!  ", TopInk::bad)
                                 : verdict.level == Level::unknown ? std::pair("?  ", TopInk::unknown)
                                                                   : std::pair("-  ", TopInk::strong);
        add({{sign + verdict.headline, ink}});
        for (const std::string& line : folded(verdict.detail, view_.width - 3, most(1, 3)))
            if (!line.empty()) add({{"   " + line, TopInk::plain}});
    }

    void where() {
        for (const Document& place : watch_value(document_, "/where")) {
            const Document& packets = watch_value(place, "/packets");
            const bool lost = watch_number(place, "/packets") > 0;
            const TopInk ink = !packets.is_number() ? TopInk::unknown : lost ? TopInk::bad : TopInk::plain;
            add({{!packets.is_number() ? "?  "
                  : lost               ? "!  "
                                       : "   ",
                  ink},
                 {padded(watch_words(place, "/title"), 14), TopInk::plain},
                 {padded(watch_count(packets), 12, true) + "  ", ink},
                 {watch_words(place, "/evidence"), TopInk::dim}});
        }
    }

    void rates() {
        if (watch_value(document_, "/run").is_null()) return;
        const auto rate = [&](const char* pointer, const char* unit) {
            return watch_rate(watch_value(document_, pointer), unit);
        };
        const double lost = watch_number(document_, "/rates/lost_per_s");
        add({{fmt::format("{}  {}  {}  {}/s to disk  ", rate("/rates/packets_per_s", "packets/s"),
                          rate("/rates/gbps", "Gb/s"), rate("/rates/events_per_s", "events/s"),
                          watch_bytes(watch_value(document_, "/rates/sink_bytes_per_s"))),
              TopInk::strong},
             {"lost " + rate("/rates/lost_per_s", "/s"), lost > 0 ? TopInk::bad : TopInk::plain}});
    }

    void losses() {
        std::string text;
        for (const Document& loss : watch_value(document_, "/losses"))
            if (watch_number(loss, "/packets") > 0 || watch_number(loss, "/per_s") > 0)
                text += fmt::format(
                    "{}{} {} ({})", text.empty() ? "lost: " : ", ", watch_cause(watch_words(loss, "/cause")),
                    watch_count(watch_value(loss, "/packets")), watch_rate(watch_value(loss, "/per_s"), "/s"));
        if (text.empty()) return;
        for (const std::string& line : folded(text, view_.width, most(1, 3))) add({{line, TopInk::bad}});
    }

    void reasons() {
        if (const std::string sentence = watch_words(document_, "/bottleneck/sentence"); !sentence.empty())
            for (const std::string& line : folded("limit: " + sentence, view_.width, most(1, 2)))
                add({{line, TopInk::plain}});
        std::size_t shown = 0;
        for (const Document& finding : watch_value(document_, "/findings")) {
            if (shown++ == most(2, 6)) break;
            const std::string severity = watch_words(finding, "/severity");
            std::string text = fmt::format("{}: {}", severity, watch_words(finding, "/text"));
            if (const std::string page = watch_words(finding, "/page"); !page.empty()) text += " (" + page + ")";
            const TopInk ink = severity == "error"     ? TopInk::bad
                               : severity == "warning" ? TopInk::unknown
                                                       : TopInk::plain;
            for (const std::string& line : folded(text, view_.width, most(1, 3))) add({{line, ink}});
        }
    }

    void stages() {
        constexpr std::size_t cell = 38;
        const std::size_t across = std::max<std::size_t>(1, (view_.width + 2) / (cell + 2));
        const std::size_t rows_most = most(3, 16);
        TopLine row;
        std::size_t in_row = 0;
        std::size_t rows = 0;
        const std::string limit = watch_words(document_, "/bottleneck/part");
        for (const Document& stage : watch_value(document_, "/pipeline/stages")) {
            if (rows == rows_most) break;
            const std::string name = watch_words(stage, "/name");
            const double busy = watch_number(stage, "/busy");
            const double waits = watch_number(stage, "/blocked");
            constexpr double nearly_all = 0.9;
            const TopInk ink = name == limit || busy > nearly_all ? TopInk::unknown : TopInk::plain;
            row.push_back({padded(fmt::format("{}{}", name == limit ? "!" : "", name), 9) +
                               padded("lcore " + watch_words(stage, "/lcore"), 9) + top_bar(busy, waits, 14) +
                               padded(watch_percent(busy), 6, true) + (++in_row < across ? "  " : ""),
                           ink});
            if (in_row < across) continue;
            add(std::exchange(row, {}));
            in_row = 0;
            ++rows;
        }
        if (in_row > 0) add(std::move(row));
    }

    /// Memory and queues, and the fullest rings.
    void levels() {
        const Document& levels = watch_value(document_, "/pipeline/levels");
        if (!levels.is_object()) return;
        std::string text = "fill:";
        for (const char* name : {"buffers", "memory", "open", "queued", "writer"}) {
            const std::string pointer = std::string("/") + name;
            if (watch_number(watch_value(levels, pointer.c_str()), "/size") > 0)
                text += fmt::format("  {} {}", name, watch_percent(fill_of(watch_value(levels, pointer.c_str()))));
        }
        if (watch_value(document_, "/pipeline/longest_poll_s").is_number())
            text += "  longest poll " + watch_duration(watch_value(document_, "/pipeline/longest_poll_s"));
        add({{text, TopInk::plain}});
        rings();
    }

    void rings() {
        std::vector<const Document*> rings;
        for (const Document& ring : watch_value(document_, "/pipeline/rings"))
            // Those of free buffers are full when nothing happens.
            if (!watch_words(ring, "/name").starts_with("free")) rings.push_back(&ring);
        std::ranges::stable_sort(rings, std::greater{}, [](const Document* ring) {
            return std::pair(watch_number(*ring, "/dropped"), fill_of(*ring));
        });
        constexpr std::size_t rings_most = 8;
        TopLine line{{"rings:", TopInk::plain}};
        for (std::size_t i = 0; i < std::min(rings.size(), rings_most); ++i) {
            const Document& ring = *rings[i];
            const bool dropped = watch_number(ring, "/dropped") > 0;
            std::string text = fmt::format("  {} {}", watch_words(ring, "/name"), watch_percent(fill_of(ring)));
            if (dropped)
                text += fmt::format(" ({} dropped)", watch_count(watch_value(ring, "/dropped")));
            else if (watch_number(ring, "/times_full") > 0)
                text += fmt::format(" (full {} times)", watch_count(watch_value(ring, "/times_full")));
            line.push_back({std::move(text), dropped ? TopInk::bad : TopInk::plain});
        }
        if (line.size() > 1) add(std::move(line));
    }

    void sinks() {
        std::size_t shown = 0;
        for (const Document& sink : watch_value(document_, "/pipeline/sinks")) {
            if (shown++ == most(2, 8)) break;
            std::string text =
                fmt::format("{}: {} written, {}", watch_words(sink, "/kind"),
                            watch_count(watch_value(sink, "/written")), watch_bytes(watch_value(sink, "/bytes")));
            if (watch_value(sink, "/free_bytes").is_number())
                text += fmt::format(", {} free", watch_bytes(watch_value(sink, "/free_bytes")));
            if (watch_value(sink, "/hours_left").is_number())
                text += fmt::format(", {} left", watch_duration(3600 * watch_number(sink, "/hours_left")));
            const std::string error = watch_words(sink, "/error");
            std::string trouble;
            if (watch_number(sink, "/lost") > 0)
                trouble += fmt::format("  {} lost", watch_count(watch_value(sink, "/lost")));
            if (!error.empty()) trouble += "  " + error;
            add({{"sink " + text, TopInk::plain},
                 {trouble, TopInk::bad},
                 {"  " + watch_words(sink, "/path"), TopInk::dim}});
        }
    }

    struct Source {
        std::size_t id = 0;
        int rank = 0;
        const char* state = "";
        double per_s = 0;
        double missing = 0;
    };

    [[nodiscard]] const Document& of_source(const char* name, std::size_t id) const {
        static const Document nothing;
        const Document& column = watch_value(document_, name);
        return column.is_array() && id < column.size() ? column[id] : nothing;
    }

    [[nodiscard]] std::vector<Source> sorted_sources() const {
        const bool running = watch_words(document_, "/status/state") == "running";
        const Document& labels = watch_value(document_, "/sources/label");
        std::vector<Source> found(labels.is_array() ? labels.size() : 0);
        for (std::size_t id = 0; id < found.size(); ++id) {
            const auto number = [](const Document& value) { return value.is_number() ? value.get<double>() : 0; };
            const Document& seen = of_source("/sources/last_seen_s", id);
            const double missing = number(of_source("/sources/missing", id));
            const bool silent = running && number(seen) > silent_after_s;
            const auto [rank, state] = of_source("/sources/lagging", id) == true ? std::pair(4, "! lags behind")
                                       : !seen.is_number()                       ? std::pair(2, "! never sent")
                                       : silent                                  ? std::pair(3, "! is silent")
                                       : missing > 0                             ? std::pair(1, "! misses packets")
                                                                                 : std::pair(0, "fine");
            found[id] = {id, rank, state, number(of_source("/sources/per_s", id)), missing};
        }
        std::ranges::stable_sort(found, [this](const Source& a, const Source& b) {
            if (view_.order == TopOrder::trouble) return std::pair(a.rank, a.missing) > std::pair(b.rank, b.missing);
            return view_.order == TopOrder::rate && a.per_s > b.per_s;
        });
        return found;
    }

    void sources() {
        const std::vector<Source> all = sorted_sources();
        screen_.sources = all.size();
        if (all.empty()) return;
        const auto trouble = std::ranges::count_if(all, [](const Source& source) { return source.rank > 0; });
        const char* const order = view_.order == TopOrder::trouble ? "trouble"
                                  : view_.order == TopOrder::rate  ? "rate"
                                                                   : "number";
        const std::size_t wide = source_label_width();
        add({{padded(fmt::format("{} sources, {}; by {}", watch_count(all.size()),
                                 trouble == 0 ? "all fine" : fmt::format("{} in trouble", watch_count(trouble)), order),
                     wide + 18) +
                  padded("rate /s", 9, true) + padded("missing", 12, true) + padded("last seen", 13, true),
              TopInk::strong}});
        const std::size_t used = screen_.lines.size() + 1;  // and the last line
        const std::size_t room = view_.height == 0 ? sources_at_once : view_.height - std::min(view_.height, used);
        screen_.source_rows = room;
        const std::size_t first =
            std::min(view_.first_source, all.size() - std::min(all.size(), std::max<std::size_t>(room, 1)));
        for (std::size_t i = first; i < std::min(all.size(), first + room); ++i) source(all[i], wide);
    }

    [[nodiscard]] std::size_t source_label_width() const {
        constexpr std::size_t columns_of_numbers = 18 + 9 + 12 + 13;
        constexpr std::size_t least = 12;
        constexpr std::size_t widest = 60;
        return std::clamp(view_.width - std::min(view_.width, columns_of_numbers + 4), least, widest);
    }

    void source(const Source& source, std::size_t wide) {
        const Document& seen = of_source("/sources/last_seen_s", source.id);
        const TopInk ink = source.rank > 1 ? TopInk::bad : source.rank == 1 ? TopInk::unknown : TopInk::plain;
        std::string label = watch_words(of_source("/sources/label", source.id), "");
        add({{padded(label, wide) + "  " + padded(source.state, 16) + padded(watch_rate(source.per_s, ""), 9, true) +
                  padded(watch_count(of_source("/sources/missing", source.id)), 12, true) +
                  padded(seen.is_number() ? watch_duration(seen) : "never", 13, true),
              ink}});
    }

    void help() {
        for (const char* line :
             {"", "q             ends this; the run goes on", "s             sorts sources: by trouble, rate, number",
              "Up Down PgUp PgDn Home   go through the sources", "? h           this, and back", "",
              "[###//....]   of an lcore's time: # busy, / waits for somebody else",
              "!stage        is what limits the run",
              "?  unknown    packets could get lost there unseen; beside it is why", "",
              "Everything is explained in docs/guides/TOP.md."})
            add({{line, TopInk::plain}});
    }

    void foot() {
        if (view_.height == 0) return;
        while (screen_.lines.size() + 1 < view_.height) add({});
        screen_.lines.resize(view_.height - std::min<std::size_t>(view_.height, 1));
        add({{"q quit   s sort   Up Down PgUp PgDn sources   ? help", TopInk::dim}});
    }

    const Document& document_;
    const TopView& view_;
    TopScreen screen_;
};

}  // namespace

void fit_to(TopLine& line, std::size_t width) {
    for (std::size_t i = 0; i < line.size(); ++i) {
        const std::size_t wide = columns_in(line[i].text);
        if (wide > width) {
            line[i].text = cut_to(line[i].text, width);
            line.resize(i + 1);
            return;
        }
        width -= wide;
    }
}

TopScreen top_screen(const Document& document, const TopView& view) {
    TopView usable = view;
    constexpr std::size_t narrowest = 20;
    usable.width = std::max(usable.width, narrowest);
    return TopPage(document, usable).make();
}

std::string top_text(const TopScreen& screen) {
    std::string text;
    for (const TopLine& line : screen.lines) {
        std::string one;
        for (const TopSpan& span : line) one += span.text;
        one.erase(one.find_last_not_of(' ') + 1);
        text += one + '\n';
    }
    return text;
}

}  // namespace weir::app
