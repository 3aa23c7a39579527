#include "probe/scattered_frames.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "wire/format_marks.hpp"

namespace weir::probe {
namespace {

/// WRITEs that begin with a detector's header, and end a frame with the number that is in it.
struct FrameEnds {
    std::set<std::uint64_t> buffers;  ///< where frames begin
    std::uint32_t header_bytes = 0;
    std::vector<std::byte> header;
    std::uint32_t rkey = 0;
    std::size_t count = 0;
};

FrameEnds ends_of(const QueuePairLog& log, const PacketSample& sample, const wire::FormatEntry& format) {
    FrameEnds out;
    const wire::FormatContext context = format.make_context({});
    for (const RdmaMessage& message : log.messages) {
        if (!message.first || !message.immediate || !message.is_write) continue;
        const std::span<const std::byte> head = sample.head(sample.requests()[*message.first]);
        if (head.size() < context.header_bytes) continue;
        // As if it were whole: only the header is looked at.
        const wire::Datagram datagram{.payload = head.data(),
                                      .payload_bytes = context.header_bytes + context.message_bytes};
        wire::Fragment fragment;
        if (format.decode_whole(context, datagram, fragment) != wire::ok) continue;
        if (static_cast<std::uint32_t>(fragment.number) != *message.immediate) continue;
        out.buffers.insert(message.va);
        out.header_bytes = context.header_bytes;
        out.header.assign(head.begin(), head.begin() + context.header_bytes);
        out.rkey = message.rkey;
        ++out.count;
    }
    return out;
}

/// How far WRITEs reach from the beginning of their buffer.
std::uint64_t reach_of(const QueuePairLog& log, const std::set<std::uint64_t>& buffers) {
    std::uint64_t out = 0;
    for (const RdmaMessage& message : log.messages) {
        if (!message.first || !message.is_write || !message.whole) continue;
        auto at = buffers.upper_bound(message.va);
        if (at == buffers.begin()) continue;
        out = std::max(out, message.va + message.bytes - *--at);
    }
    return out;
}

}  // namespace

std::optional<ScatteredFrames> scattered_frames(const QueuePairLog& log, const PacketSample& sample) {
    for (const wire::FormatEntry& format : wire::formats()) {
        if (format.decode_whole == nullptr) continue;
        const FrameEnds ends = ends_of(log, sample, format);
        // With one WRITE for a frame nothing is scattered.
        if (ends.count == 0 || log.messages.size() < 2 * ends.count) continue;
        const std::uint64_t bytes = reach_of(log, ends.buffers);
        if (bytes >> 32U != 0) continue;
        const wire::SampledPacket frame{ends.header, static_cast<std::uint32_t>(bytes), 0, true};
        const wire::Recognition found = wire::marks_of(format).recognise(std::span(&frame, 1));
        if (found.share == 0) continue;
        ScatteredFrames out{.format = std::string(format.name), .options = found.options};
        out.confidence = 0.95;
        std::uint64_t stride = bytes;
        if (ends.buffers.size() > 1) {
            stride = UINT64_MAX;
            for (auto at = ends.buffers.begin(), next = std::next(at); next != ends.buffers.end(); ++at, ++next)
                stride = std::min(stride, *next - *at);
        }
        if (stride < bytes) continue;
        const std::uint64_t count = (*ends.buffers.rbegin() - *ends.buffers.begin()) / stride + 1;
        constexpr std::uint64_t buffers_max = 4096;
        if (count > buffers_max) continue;
        out.region.va = *ends.buffers.begin();
        out.region.bytes = bytes;
        out.region.rkey = ends.rkey;
        out.region.count = static_cast<std::uint32_t>(count);
        out.region.stride = stride;
        out.region.backed = true;
        out.evidence.push_back(
            fmt::format("frames scattered over memory: {} WRITEs, {} of them with an immediate and the "
                        "header, {} buffers of {} bytes from {:#x} on",
                        log.messages.size(), ends.count, count, bytes, out.region.va));
        out.doubts.push_back("buffers that no frame ended in are not known; the region may be larger");
        return out;
    }
    return std::nullopt;
}

}  // namespace weir::probe
