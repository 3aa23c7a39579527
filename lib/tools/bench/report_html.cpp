#include "bench/report_html.hpp"

#include <fmt/format.h>

#include "bench/html_text.hpp"
#include "bench/report_plots.hpp"
#include "bench/report_text.hpp"
#include "bench/result_table.hpp"
#include "bench/svg_plot.hpp"

namespace weir::bench {
namespace {

constexpr std::string_view page_style = R"(:root{color-scheme:light dark;--paper:#fff;--ink:#1b1f24;--faint:#565f69}
@media screen and (prefers-color-scheme:dark){:root{--paper:#14181d;--ink:#e6e9ec;--faint:#a3adb8}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1rem;max-width:84rem;background:var(--paper);color:var(--ink);font:1rem/1.5 system-ui,sans-serif}
h1{font-size:1.5rem;line-height:1.25;margin:.5rem 0}h2{font-size:1.15rem;margin:2rem 0 .5rem}
h1,p,li,dd{overflow-wrap:anywhere}
p,ul.read{max-width:70ch}ul.read{padding-left:1.2rem}.faint{color:var(--faint)}
.plots{margin-top:1.5rem;display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,24rem),1fr));gap:1.5rem 2rem}
.box{overflow-x:auto;max-width:100%}
table{border-collapse:collapse;font-size:.875rem;font-variant-numeric:tabular-nums}
th,td{padding:.2rem .6rem;text-align:left;vertical-align:bottom;white-space:nowrap}
th:first-child,td:first-child{padding-left:0}
th small{display:block;font-weight:400;color:var(--faint)}
thead th{border-bottom:2px solid var(--axis)}tbody tr{border-top:1px solid var(--grid)}
.n{text-align:right}
tr.notes{border-top:0}.notes td{padding-top:0}.notes div{color:var(--faint)}
.notes td,.heading td{white-space:normal}.notes p,.heading p{margin:0;max-width:none}
.notes div,.heading div{position:sticky;left:0;max-width:min(110ch,calc(100vw - 2rem))}
.heading td{padding-top:.8rem;font-weight:600}.heading+tr{border-top:0}
.hosts td{white-space:normal;vertical-align:top;min-width:9rem}.hosts th{vertical-align:top}
pre{overflow-x:auto;padding:.6rem;background:var(--band);white-space:pre-wrap;overflow-wrap:anywhere}
summary{cursor:pointer;font-weight:600;margin:1.5rem 0 .5rem}
@media print{@page{size:A4 landscape;margin:12mm}html{font-size:9pt}body{padding:0;max-width:none}
.box{overflow:visible}table{font-size:7pt}details table{font-size:6pt}th,td{padding:1pt 3pt}
.plots{grid-template-columns:repeat(3,1fr)}tr,h2{break-inside:avoid}h2,.heading{break-after:avoid}
pre{white-space:pre-wrap}details::details-content{content-visibility:visible;block-size:auto}}
)";

std::string head(const Results& results, const std::string& title) {
    std::string html = fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        "<title>{0}</title>\n<style>\n{1}{2}</style>\n</head>\n<body>\n<h1>{0}</h1>\n",
        escaped(title), page_style, plot_style());
    html += fmt::format("<p class=\"faint\">{}{}{}</p>\n", escaped(results.started),
                        results.started.empty() || results.link.empty() ? "" : " &middot; ", escaped(results.link));
    if (const std::string unusable = unusable_text(results); !unusable.empty())
        return html + fmt::format("<p><strong>{}</strong></p>\n", escaped(unusable));
    return html + fmt::format("<p>{}</p>\n", escaped(validity_text(results)));
}

std::string how_to_read(const Results& results) {
    std::string html = R"(<h2>How to read this</h2>
<ul class="read">
<li>Rates are bits of UDP payload a second; 1 Gb is 10<sup>9</sup> bits, 1 GB is 10<sup>9</sup> bytes. Headers do not count.</li>
<li>In a trial, the sender keeps a load for some time; then the receiver is drained and every counter is read. A trial is
<em>valid</em> if the sender kept to its schedule and the counters came to rest. An invalid trial says nothing about the
receiver: it is shown, but no result comes from it.</li>
<li>A search ends with two <em>bounds</em>: at the lower one the goal is met, at the upper one it is not. <em>BW average</em>
is the rate that was received at the lower bound (conditional throughput, RFC 9971), the median if it was repeated;
<em>min..max</em> spans the repeats, <em>bounds</em> the lowest lower and the highest upper bound.</li>
<li>Loss is what the receiver did not get of what the sender handed over, in the layer that counted it; <em>unknown</em>
is where nobody counts. Of the loss ratio in parentheses, 1 is everything.</li>
<li>CPU and latency are medians at the lower bound. Latency needs a clock that both sides share.</li>
)";
    for (const std::string& goal : goal_texts(results)) html += "<li>Goal " + escaped(goal) + ".</li>\n";
    return html + "</ul>\n";
}

std::string section(std::string_view title, const std::string& content) {
    return content.empty() ? std::string{} : fmt::format("<h2>{}</h2>\n{}", title, content);
}

std::string plots(const std::string& figures) {
    return figures.empty() ? std::string{} : "<div class=\"plots\">\n" + figures + "</div>\n";
}

/// A row with what each host says; none if no host says anything.
std::string fact(std::string_view name, const std::vector<HostFacts>& hosts, std::string (*text_of)(const HostFacts&)) {
    std::string cells;
    bool said = false;
    for (const HostFacts& host : hosts) {
        const std::string text = text_of(host);
        said |= !text.empty();
        cells += "<td>" + escaped(text) + "</td>";
    }
    return said ? fmt::format("<tr><th scope=\"row\">{}</th>{}</tr>\n", name, cells) : "";
}

std::string memory_text(const HostFacts& host) {
    constexpr double gib = 1024.0 * 1024 * 1024;
    return host.memory_bytes == 0 ? "" : fmt::format("{:.1f} GiB", static_cast<double>(host.memory_bytes) / gib);
}

std::string remarks_text(const HostFacts& host) {
    std::string text;
    for (const std::string& remark : host.remarks) text += (text.empty() ? "" : "; ") + remark;
    return text;
}

std::string hosts_table(const std::vector<HostFacts>& hosts) {
    if (hosts.empty()) return {};
    return "<div class=\"box hosts\" tabindex=\"0\"><table>\n<tbody>\n" +
           fact("role", hosts, [](const HostFacts& host) { return host.role; }) +
           fact("name", hosts, [](const HostFacts& host) { return host.name; }) +
           fact("CPU", hosts, [](const HostFacts& host) { return host.cpu; }) +
           fact("CPUs", hosts, [](const HostFacts& host) { return std::to_string(host.cpus); }) +
           fact("memory", hosts, memory_text) +
           fact("kernel", hosts, [](const HostFacts& host) { return host.kernel; }) +
           fact("system", hosts, [](const HostFacts& host) { return host.system; }) +
           fact("interface", hosts, [](const HostFacts& host) { return host.interface; }) +
           fact("hypervisor", hosts, [](const HostFacts& host) { return host.virtual_by; }) +
           fact("weir", hosts, [](const HostFacts& host) { return host.weir; }) + fact("remarks", hosts, remarks_text) +
           "</tbody></table></div>\n";
}

std::string faint(const std::string& text) {
    return text.empty() ? std::string{} : "<p class=\"faint\">" + escaped(text) + "</p>\n";
}

std::string table_or_nothing(const Table& table) {
    return table.rows.empty() ? std::string{} : html_table(table);
}

std::string all_trials(const std::vector<PointGroup>& groups) {
    const Table table = trial_table(groups);
    if (table.rows.empty()) return {};
    return fmt::format("<details><summary>All {} trials</summary>\n{}</details>\n", table.rows.size(),
                       html_table(table));
}

}  // namespace

std::string report_html(const Results& results) {
    const std::vector<PointGroup> groups = group_points(results);
    std::string html = head(results, results.title.empty() ? "weir bench" : results.title);
    if (groups.empty()) html += "<p>Nothing was measured.</p>\n";
    html += section("Rate without loss", table_or_nothing(result_table(groups)) + faint(at_least_text(groups)) +
                                             plots(rate_figures(groups) + cpu_figure(groups) + latency_figure(groups)));
    html += section("Loss at given loads", table_or_nothing(load_table(groups)));
    html += section("Longest bursts at full speed without loss", table_or_nothing(burst_table(groups)));
    html += how_to_read(results);
    html += section("Loss", plots(loss_figures(groups)));
    html += section("Machines", hosts_table(results.hosts));
    if (!results.command.empty()) html += section("Command", "<pre>" + escaped(results.command) + "</pre>\n");
    return html + all_trials(groups) + "</body>\n</html>\n";
}

}  // namespace weir::bench
