// Keys of [[stream]] that say how PSI's detectors (jungfrau, moench, eiger) are set up. Which numbers go together is
// the format's own knowledge (wire/sls/options.cpp); here it gets the line of the key in front.
#include <fmt/format.h>

#include <algorithm>

#include "config/parts.hpp"
#include "config/stream_options.hpp"

namespace weir::pipeline::detail {

namespace {

/// Asks the format about one option, so that the error can name the key.
void check(TableReader& table, const StreamConfig& stream, std::string_view key, const wire::SlsOptions& options) {
    wire::FormatOptions asked;
    asked.interfaces = static_cast<int>(stream.interfaces);
    asked.sls = options;
    try {
        static_cast<void>(wire::find_format(stream.format)->make_context(asked));
    } catch (const core::UsageError& error) {
        const toml::node* node = table.get(key);
        throw core::UsageError(
            fmt::format("{}:{}: {}: {}", table.file(), table.place(*node).line, table.full_key(key), error.what()));
    }
}

/// The formats of `names`, for a message.
auto only_of(std::initializer_list<std::string_view> names) {
    return [names = std::vector(names)](const StreamConfig& stream) {
        return std::ranges::find(names, stream.format) != names.end()
                   ? std::string()
                   : "nothing: it belongs to format = " + any_of(names);
    };
}

}  // namespace

void add_detector_options(OptionTable<StreamConfig>& out) {
    out.integer(
           "interfaces", {1, 2}, &StreamConfig::interfaces,
           "jungfrau, moench: with 2, a module sends half its rows from each of two interfaces to a UDP port of its "
           "own. Each is a source; with `source_by = \"header\"` the module is")
        .kind("1, 2")
        .refused_where(only_of({"jungfrau", "moench"}));
    out.integer("bit_depth", {0, 64}, &StreamConfig::bit_depth, "eiger only: bits per pixel")
        .kind("4, 8, 12, 16, 32")
        .refused_where(only_of({"eiger"}))
        .otherwise([](StreamConfig& stream) { stream.bit_depth = 16; })
        .usually("16")
        .check([](TableReader& table, const StreamConfig& stream) {
            check(table, stream, "bit_depth", {.bit_depth = stream.bit_depth});
        });
    out.boolean("tengiga", &StreamConfig::tengiga, "eiger only: packets of 4096 bytes, or of 1024")
        .refused_where(only_of({"eiger"}))
        .otherwise([](StreamConfig& stream) { stream.tengiga = true; })
        .usually("true");
    out.integer("rows", {0, 65535}, &StreamConfig::rows,
                "jungfrau (steps of 8), moench (of 16), eiger (whole packets): partial readout, rows of a module "
                "(eiger: of a port). A message has just these rows")
        .kind("integer")
        .refused_where(only_of({"jungfrau", "moench", "eiger"}))
        .unset("all")
        .check([](TableReader& table, const StreamConfig& stream) {
            check(table, stream, "rows",
                  {.rows = stream.rows, .bit_depth = stream.bit_depth, .tengiga = stream.tengiga});
        });
}

}  // namespace weir::pipeline::detail
