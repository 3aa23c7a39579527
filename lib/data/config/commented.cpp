#include "config/commented.hpp"

#include <algorithm>

#include "config/parts.hpp"
#include "config/stream_options.hpp"

namespace weir::config {
namespace {

using namespace detail;

/// `text` as comment lines.
std::string comment_lines(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        out.append("# ").append(text.substr(0, end)).append("\n");
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return out;
}

/// A line with what is said of it: behind it if there is room, else above.
std::string commented_line(std::string line, const std::string& remark) {
    constexpr std::size_t column = 34;
    constexpr std::size_t columns = 132;
    if (remark.empty()) return line;
    if (remark.find('\n') != std::string::npos || std::max(line.size(), column) + remark.size() > columns)
        return comment_lines(remark) + line;
    line.pop_back();
    if (line.size() < column) line.resize(column, ' ');
    return line + "  # " + remark + "\n";
}

/// The keys of a table that are required or not as they would be anyhow, and those that there is something to say of.
template <class T>
std::string brief(const OptionTable<T>& options, const T& from, std::string_view table, std::size_t index,
                  const Remarks& remarks) {
    std::string out = comment_lines(remarks(table, index, ""));
    for (const options::AnyOption& option : options.all()) {
        if (!option.belongs(&from)) continue;
        const std::string remark = remarks(table, index, option.key());
        if (option.is_default(&from) && remark.empty()) continue;
        std::string line = option.line(&from);
        constexpr std::string_view mark = "  # default\n";
        if (line.ends_with(mark)) line.replace(line.size() - mark.size(), mark.size(), "\n");
        if (!line.empty() && line.front() != '#') out += commented_line(std::move(line), remark);
    }
    return out;
}

/// Sinks print themselves in full; what is default is left out here.
std::string brief_sink(const SinkConfig& sink) {
    std::string out;
    const std::string whole = print_sink(sink);
    for (std::string_view text = whole; !text.empty();) {
        const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(end);
        if (!line.starts_with('#') && !line.ends_with("# default\n")) out += line;
    }
    return out;
}

}  // namespace

std::string print_commented(const RunConfig& run, const Remarks& remarks) {
    std::string out = brief(run_options(), run, "top", 0, remarks);
    for (std::size_t i = 0; i < run.formats.size(); ++i)
        out += "\n[[format]]\n" + brief(format_table_options(), run.formats[i], "format", i, remarks);
    for (std::size_t i = 0; i < run.ports.size(); ++i)
        out += "\n[[port]]\n" + brief(port_options(), run.ports[i], "port", i, remarks);
    for (std::size_t i = 0; i < run.streams.size(); ++i)
        out += "\n[[stream]]\n" + brief(stream_options(run), run.streams[i], "stream", i, remarks);
    out += "\n[events]\n" + brief(events_options(), run.events, "events", 0, remarks);
    for (const SinkConfig& sink : run.sinks) out += brief_sink(sink);
    return out;
}

}  // namespace weir::config
