#include "cluster_screen.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "text_columns.hpp"
#include "watch_numbers.hpp"
#include "watch_verdict.hpp"

namespace weir::app {

namespace {

using Document = nlohmann::json;

/// Below that nobody needs to look.
constexpr double share_shown = 0.05;

double sum_of(const Document& counts) {
    double sum = 0;
    if (counts.is_object())
        for (const Document& count : counts)
            if (count.is_number()) sum += count.get<double>();
    return sum;
}

/// "builder1 31 %, builder0 6 %": whom the node waited for lately, longest first.
std::string waits_text(const Document& waits, const std::string& node) {
    std::vector<std::pair<double, std::string>> found;
    if (waits.is_array())
        for (const Document& wait : waits)
            if (watch_words(wait, "/node") == node && watch_number(wait, "/share") >= share_shown)
                found.emplace_back(watch_number(wait, "/share"), watch_words(wait, "/for"));
    std::ranges::sort(found, std::greater());
    std::string text;
    for (const auto& [share, whom] : found)
        text += fmt::format("{}{} {:.0f} %", text.empty() ? "" : ", ", whom, 100 * std::min(share, 1.0));
    return text;
}

/// 2: it is not there or failed; 1: something was lost there or it is not as the others are; 0: fine.
int trouble_of(const Document& node, const std::string& common_state) {
    if (watch_value(node, "/reached") != true && watch_value(node, "/spare") == true) return 0;
    if (watch_value(node, "/reached") != true || !watch_words(node, "/error").empty()) return 2;
    const bool differs = watch_words(node, "/state") != common_state;
    return differs || sum_of(watch_value(node, "/lost")) > 0 ? 1 : 0;
}

class ClusterPage {
public:
    ClusterPage(const Document& document, const TopView& view) : document_(document), view_(view) {}

    TopScreen make() {
        head();
        nodes();
        losses();
        command();
        foot();
        return std::move(screen_);
    }

private:
    void add(TopLine line) {
        fit_to(line, view_.width);
        screen_.lines.push_back(std::move(line));
    }

    void head() {
        const Document& nodes = watch_value(document_, "/nodes");
        const auto reached =
            std::ranges::count_if(nodes, [](const Document& node) { return watch_value(node, "/reached") == true; });
        std::string right = watch_words(document_, "/state");
        if (watch_value(document_, "/run").is_number()) right += "  run " + watch_words(document_, "/run");
        const std::string left =
            fmt::format("cluster {}: {} of {} nodes answer", watch_words(document_, "/name"), reached, nodes.size());
        const std::size_t room = view_.width - std::min(view_.width, columns_in(right) + 2);
        add({{padded(left, room), TopInk::strong}, {"  " + right, TopInk::plain}});
        if (!view_.trouble.empty())
            add({{fmt::format("?? Not known: last heard {} ago. {}", watch_duration(view_.heard_s_ago), view_.trouble),
                  TopInk::alarm}});
        add({});
    }

    [[nodiscard]] std::vector<const Document*> in_order() const {
        std::vector<const Document*> sorted;
        const Document& nodes = watch_value(document_, "/nodes");
        if (nodes.is_array())
            for (const Document& node : nodes) sorted.push_back(&node);
        const std::string state = watch_words(document_, "/state");
        if (view_.order == TopOrder::trouble)
            std::ranges::stable_sort(sorted, std::greater(),
                                     [&](const Document* node) { return trouble_of(*node, state); });
        if (view_.order == TopOrder::rate)
            std::ranges::stable_sort(sorted, std::greater(),
                                     [](const Document* node) { return watch_number(*node, "/rates/gbps"); });
        return sorted;
    }

    void nodes() {
        const std::vector<const Document*> all = in_order();
        std::size_t wide = 4;
        for (const Document* node : all) wide = std::max(wide, columns_in(watch_words(*node, "/name")));
        wide = std::min<std::size_t>(wide, 24);
        add({{padded("node", wide) + "  role     state      run  " + padded("for", 10, true) +
                  padded("Gbit/s", 9, true) + padded("events/s", 10, true) + padded("lost", 8, true) + "  waits for",
              TopInk::strong}});
        screen_.sources = all.size();
        constexpr std::size_t below = 5;  // what follows is short
        const std::size_t used = screen_.lines.size() + below;
        const std::size_t room =
            view_.height == 0 ? all.size() : std::max<std::size_t>(3, view_.height - std::min(view_.height, used));
        screen_.source_rows = room;
        const std::size_t first = std::min(view_.first_source, all.size() - std::min(all.size(), room));
        for (std::size_t i = first; i < std::min(all.size(), first + room); ++i) node(*all[i], wide);
    }

    void node(const Document& node, std::size_t wide) {
        const int trouble = trouble_of(node, watch_words(document_, "/state"));
        const TopInk ink = trouble > 1 ? TopInk::bad : trouble == 1 ? TopInk::unknown : TopInk::plain;
        const std::string name = watch_words(node, "/name");
        std::string line = padded(name, wide) + "  " + padded(watch_words(node, "/role"), 9);
        if (watch_value(node, "/reached") != true) {
            const bool spare = watch_value(node, "/spare") == true;
            add({{line + (spare ? "spare, not here" : "not reached: " + watch_words(node, "/error")), ink}});
            return;
        }
        const bool in_run = watch_words(node, "/state") != "idle";
        line += padded(watch_words(node, "/state"), 9);
        line += padded(watch_words(node, "/run/number"), 5, true) + "  ";
        line += padded(in_run ? watch_duration(watch_value(node, "/run/seconds")) : "", 10, true);
        line += padded(in_run ? fmt::format("{:.3f}", watch_number(node, "/rates/gbps")) : "", 9, true);
        line += padded(in_run ? watch_rate(watch_value(node, "/rates/events_per_s"), "") : "", 10, true);
        line += padded(watch_count(sum_of(watch_value(node, "/lost"))), 8, true);
        line += "  " + waits_text(watch_value(document_, "/waits"), name);
        add({{line, ink}});
        if (const std::string error = watch_words(node, "/error"); !error.empty())
            add({{padded("", wide) + "  " + error, TopInk::bad}});
    }

    void losses() {
        const Document& losses = watch_value(document_, "/losses");
        if (!losses.is_array() || losses.empty()) return;
        add({});
        for (const Document& loss : losses)
            add({{fmt::format("{} lacks parts of {}: {} node_down, {} not_held, {} late", watch_words(loss, "/builder"),
                              watch_words(loss, "/readout"), watch_words(loss, "/node_down"),
                              watch_words(loss, "/not_held"), watch_words(loss, "/late")),
                  TopInk::bad}});
    }

    void command() {
        const Document& last = watch_value(document_, "/command");
        const std::string name = watch_words(last, "/command");
        if (name.empty()) return;
        const std::string error = watch_words(last, "/error");
        const bool done = watch_value(last, "/done") == true;
        add({});
        add({{fmt::format("last order: {} at {}: {}", name, watch_words(last, "/accepted"),
                          !done            ? "under way"
                          : !error.empty() ? error
                                           : watch_words(last, "/message")),
              error.empty() ? TopInk::plain : TopInk::bad}});
    }

    void foot() {
        if (view_.height == 0) return;
        while (screen_.lines.size() + 1 < view_.height) add({});
        screen_.lines.resize(view_.height - std::min<std::size_t>(view_.height, 1));
        add({{"q quit   s sort   Up Down PgUp PgDn nodes", TopInk::dim}});
    }

    const Document& document_;
    const TopView& view_;
    TopScreen screen_;
};

}  // namespace

TopScreen cluster_screen(const Document& document, const TopView& view) {
    TopView usable = view;
    constexpr std::size_t narrowest = 20;
    usable.width = std::max(usable.width, narrowest);
    return ClusterPage(document, usable).make();
}

}  // namespace weir::app
