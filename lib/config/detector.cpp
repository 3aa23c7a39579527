// Keys of [[stream]] that say how PSI's detectors (jungfrau, moench, eiger) are set up. Which numbers go together is
// the format's own knowledge (wire/sls/options.cpp); here it gets the line of the key in front.
#include <fmt/format.h>

#include "config/parts.hpp"

namespace weir::pipeline::detail {

namespace {

bool is_module(const StreamConfig& stream) {
    return stream.format == "jungfrau" || stream.format == "moench";
}

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

void read_eiger(TableReader& table, StreamConfig& stream) {
    constexpr Bounds bits{0, 64};  // the format says which of them
    stream.bit_depth = static_cast<std::uint32_t>(table.integer("bit_depth", bits).value_or(16));
    if (table.get("bit_depth") != nullptr) check(table, stream, "bit_depth", {.bit_depth = stream.bit_depth});
    stream.tengiga = table.boolean("tengiga").value_or(true);
}

}  // namespace

void read_detector_keys(TableReader& table, StreamConfig& stream) {
    const bool eiger = stream.format == "eiger";
    if (is_module(stream))
        stream.interfaces = static_cast<std::uint32_t>(table.integer("interfaces", {1, 2}).value_or(1));
    else
        table.refuse("interfaces", "nothing: it belongs to format = \"jungfrau\" or \"moench\"");
    if (eiger) {
        read_eiger(table, stream);
    } else {
        table.refuse("bit_depth", "nothing: it belongs to format = \"eiger\"");
        table.refuse("tengiga", "nothing: it belongs to format = \"eiger\"");
    }
    if (!eiger && !is_module(stream)) {
        table.refuse("rows", "nothing: it belongs to format = \"jungfrau\", \"moench\" or \"eiger\"");
        return;
    }
    constexpr Bounds any_rows{0, 65535};  // the format says which of them
    if (const auto rows = table.integer("rows", any_rows)) {
        stream.rows = static_cast<std::uint32_t>(*rows);
        check(table, stream, "rows", {.rows = stream.rows, .bit_depth = stream.bit_depth, .tengiga = stream.tengiga});
    }
}

}  // namespace weir::pipeline::detail
