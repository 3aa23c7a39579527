#include "observe/geometry_hint.hpp"

#include <optional>

#include "core/error.hpp"

namespace weir::observe {

using assemble::ByteRange;
using wire::FormatContext;
using wire::FormatOptions;

namespace {

/// What did come, if that is one range.
std::optional<ByteRange> received(std::span<const ByteRange> missing, std::uint32_t total) {
    ByteRange there{0, total};
    if (missing.front().begin == 0) {
        there.begin = missing.front().end;
        missing = missing.subspan(1);
    }
    if (!missing.empty()) there.end = missing.front().begin;
    const bool one = missing.empty() || (missing.size() == 1 && missing.front().end == total);
    return one && there.begin < there.end ? std::optional(there) : std::nullopt;
}

std::optional<FormatContext> context_with(const config::StreamConfig& stream, const FormatOptions& options) {
    try {
        return format_entry(stream).make_context(options);
    } catch (const core::UsageError&) {
        return std::nullopt;  // the detector has no such readout
    }
}

}  // namespace

std::string fitting_setting(const config::RunConfig& config, const config::StreamConfig& stream,
                            std::span<const ByteRange> missing) {
    const FormatOptions options = format_options(config, stream);
    const auto now = context_with(stream, options);
    if (!now || now->message_bytes == 0 || now->payload_bytes == 0 || missing.empty()) return "";
    const auto there = received(missing, now->message_bytes);
    if (!there) return "";
    const auto setting_for = format_entry(stream).setting_for;
    return setting_for != nullptr ? setting_for(options, *now, {there->begin, there->end}) : "";
}

}  // namespace weir::observe
