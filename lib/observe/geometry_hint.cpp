#include "observe/geometry_hint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/error.hpp"
#include "wire/eiger/eiger.hpp"
#include "wire/jungfrau/jungfrau.hpp"
#include "wire/moench/moench.hpp"

namespace weir::pipeline {

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

std::optional<FormatContext> context_with(const StreamConfig& stream, const FormatOptions& options) {
    try {
        return format_entry(stream).make_context(options);
    } catch (const core::UsageError&) {
        return std::nullopt;  // the detector has no such readout
    }
}

/// Where the packets of an interface lie in what is configured: packet numbers are what both have in common.
bool is_where(const FormatContext& wanted, std::size_t lane, const FormatContext& now, const ByteRange& there) {
    const std::uint32_t first = now.sls.lanes[0].first_packet + there.begin / now.payload_bytes;
    const std::uint32_t packets = (there.end - there.begin) / now.payload_bytes;
    return wanted.sls.lanes[lane].first_packet == first && wanted.sls.lane_packets == packets;
}

std::string module_setting(const StreamConfig& stream, const FormatOptions& options, const FormatContext& now,
                           const ByteRange& there, std::uint32_t rows_max, std::uint32_t rows_step) {
    if (options.sls.interfaces_joined && stream.interfaces == 2)
        return there.end - there.begin == now.message_bytes / 2
                   ? "all UDP ports of both interfaces in `udp_dst` (those of one are there)"
                   : "";
    for (const int interfaces : {options.interfaces, 3 - options.interfaces})
        for (std::uint32_t rows = rows_max; rows >= rows_step; rows -= rows_step) {
            FormatOptions other = options;
            other.interfaces = interfaces;
            other.sls.rows = rows;
            const auto wanted = context_with(stream, other);
            if (!wanted) continue;
            const bool fits = is_where(*wanted, 0, now, there) || (interfaces == 2 && is_where(*wanted, 1, now, there));
            if (!fits) continue;
            const bool other_rows = rows != stream.rows.value_or(rows_max);
            const bool other_interfaces = interfaces != options.interfaces;
            return fmt::format("{}{}{}", other_interfaces ? fmt::format("`interfaces = {}`", interfaces) : "",
                               other_interfaces && other_rows ? " with " : "",
                               other_rows ? fmt::format("`rows = {}`", rows) : "");
        }
    return "";
}

std::string eiger_setting(const StreamConfig& stream, const FormatOptions& options, const FormatContext& now,
                          const ByteRange& there) {
    if (there.begin != 0) return "";
    std::string text;
    for (const std::uint32_t bits : {4U, 8U, 12U, 16U, 32U}) {
        FormatOptions other = options;
        other.sls.bit_depth = bits;
        const auto wanted = context_with(stream, other);
        if (wanted && wanted->message_bytes == there.end) text = fmt::format("`bit_depth = {}`", bits);
    }
    const std::uint64_t rows =
        std::uint64_t{stream.rows.value_or(wire::Eiger::rows)} * there.end / std::max(1U, now.message_bytes);
    FormatOptions other = options;
    other.sls.rows = static_cast<std::uint32_t>(rows);
    const auto wanted = context_with(stream, other);
    if (wanted && wanted->message_bytes == there.end)
        text += fmt::format("{}`rows = {}`", text.empty() ? "" : " or ", rows);
    return text;
}

std::string declared_setting(const FormatOptions& options, const FormatContext& now, const ByteRange& there) {
    if (there.begin != 0) return "";
    if (options.declared.total_bytes) return fmt::format("`total = {}`", there.end);
    if (now.payload_bytes == 0 || there.end % now.payload_bytes != 0) return "";
    return fmt::format("`packets = {}`", there.end / now.payload_bytes);
}

}  // namespace

std::string fitting_setting(const RunConfig& config, const StreamConfig& stream, std::span<const ByteRange> missing) {
    const FormatOptions options = format_options(config, stream);
    const auto now = context_with(stream, options);
    if (!now || now->message_bytes == 0 || now->payload_bytes == 0 || missing.empty()) return "";
    const auto there = received(missing, now->message_bytes);
    if (!there) return "";
    if (stream.format == wire::Jungfrau::name)
        return module_setting(stream, options, *now, *there, wire::Jungfrau::rows, wire::Jungfrau::rows_step);
    if (stream.format == wire::Moench::name)
        return module_setting(stream, options, *now, *there, wire::Moench::rows, wire::Moench::rows_step);
    if (stream.format == wire::Eiger::name) return eiger_setting(stream, options, *now, *there);
    if (format_entry(stream).name == "declared") return declared_setting(options, *now, *there);
    return "";
}

}  // namespace weir::pipeline
