// PSI's detectors beyond the decoder: where a packet made again belongs, and which readout fits what came.
#include <fmt/format.h>

#include "core/error.hpp"
#include "wire/formats/sls/sls_entry.hpp"

namespace weir::wire {
namespace {

/// Where the packets of an interface lie in what is configured: packet numbers are what both have in common.
bool is_where(const FormatContext& wanted, std::size_t lane, const FormatContext& now, ByteSpan there) {
    const std::uint32_t first = now.sls.lanes[0].first_packet + there.begin / now.payload_bytes;
    const std::uint32_t packets = (there.end - there.begin) / now.payload_bytes;
    return wanted.sls.lanes[lane].first_packet == first && wanted.sls.lane_packets == packets;
}

}  // namespace

bool put_sls_place(const FormatContext& context, const FormatOptions& /*options*/, std::uint32_t lane,
                   std::uint64_t offset, std::span<std::byte> header) {
    const std::uint32_t first = context.sls.lanes[context.sls.lane_by == LaneBy::none ? 0 : lane].first_packet;
    store_le(header.data() + Sls::packet_number_at, first + static_cast<std::uint32_t>(offset / context.payload_bytes));
    return true;
}

std::optional<FormatContext> readout_with(FormatContext (*make_context)(const FormatOptions&),
                                          const FormatOptions& options) {
    try {
        return make_context(options);
    } catch (const core::UsageError&) {
        return std::nullopt;
    }
}

std::string module_setting(FormatContext (*make_context)(const FormatOptions&), const FormatOptions& options,
                           const FormatContext& now, ByteSpan there, std::uint32_t rows_max, std::uint32_t rows_step) {
    if (options.sls.interfaces_joined && options.interfaces == 2)
        return there.end - there.begin == now.message_bytes / 2
                   ? "all UDP ports of both interfaces in `udp_dst` (those of one are there)"
                   : "";
    for (const int interfaces : {options.interfaces, 3 - options.interfaces})
        for (std::uint32_t rows = rows_max; rows >= rows_step; rows -= rows_step) {
            FormatOptions other = options;
            other.interfaces = interfaces;
            other.sls.rows = rows;
            const auto wanted = readout_with(make_context, other);
            if (!wanted) continue;
            const bool fits = is_where(*wanted, 0, now, there) || (interfaces == 2 && is_where(*wanted, 1, now, there));
            if (!fits) continue;
            const bool other_rows = rows != options.sls.rows.value_or(rows_max);
            const bool other_interfaces = interfaces != options.interfaces;
            return fmt::format("{}{}{}", other_interfaces ? fmt::format("`interfaces = {}`", interfaces) : "",
                               other_interfaces && other_rows ? " with " : "",
                               other_rows ? fmt::format("`rows = {}`", rows) : "");
        }
    return "";
}

}  // namespace weir::wire
