// Keys of [[stream]] that belong to formats. Each format describes its own (wire/formats/); here they become keys of a
// stream, which other formats refuse.
#include <fmt/format.h>

#include <algorithm>

#include "config/parts.hpp"
#include "config/stream_options.hpp"

namespace weir::config::detail {

namespace {

using wire::FormatEntry;

/// Refuses the key where the stream's format is none of `names`.
auto only_of(std::vector<std::string_view> names) {
    return [names = std::move(names)](const StreamConfig& stream) {
        return std::ranges::find(names, stream.format) != names.end()
                   ? std::string()
                   : "nothing: it belongs to format = " + any_of(names);
    };
}

std::vector<std::string_view> formats_with(std::string_view key) {
    std::vector<std::string_view> names;
    for (const FormatEntry& entry : wire::formats())
        if (std::ranges::find(entry.keys, key) != entry.keys.end()) names.push_back(entry.name);
    return names;
}

/// Asks the format about what is known so far, so that the error can name the key.
auto agrees_with_format(std::string_view key) {
    return [key](TableReader& table, const StreamConfig& stream) {
        wire::FormatOptions asked = stream.own;
        asked.message_bytes_max = static_cast<std::uint32_t>(message_bytes_limit);
        try {
            static_cast<void>(format_entry(stream).make_context(asked));
        } catch (const core::UsageError& error) {
            throw core::UsageError(fmt::format("{}:{}: {}: {}", table.file(), table.place(*table.get(key)).line,
                                               table.full_key(key), error.what()));
        }
    };
}

}  // namespace

void add_format_keys(OptionTable<StreamConfig>& out) {
    std::vector<decltype(FormatEntry::describe)> done;
    for (const FormatEntry& entry : wire::formats()) {
        if (entry.describe == nullptr || std::ranges::find(done, entry.describe) != done.end()) continue;
        done.push_back(entry.describe);
        const auto described = entry.describe();
        for (const options::AnyOption& option : described.all())
            out.add_of_part(option, &StreamConfig::own)
                .refused_where(only_of(formats_with(option.key())))
                .also_check(agrees_with_format(option.key()));
    }
}

}  // namespace weir::config::detail
