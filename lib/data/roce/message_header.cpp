#include "roce/message_header.hpp"

#include <algorithm>
#include <cstring>

#include "assemble/message_table.hpp"
#include "core/error.hpp"

namespace weir::roce {

using assemble::Message;
using assemble::MessageTable;
using wire::Verdict;

void MessageHeader::check(const MessageSource& source) {
    if (source.number_by == NumberBy::format && (source.format == nullptr || !source.context.carries_number))
        throw core::UsageError("event = \"format\": the stream's format carries no event number");
}

Verdict MessageHeader::read(const MessageSource& source, const std::byte* bytes, std::uint64_t total,
                            wire::Fragment& out) noexcept {
    const wire::Datagram datagram{.payload = bytes, .payload_bytes = static_cast<std::uint32_t>(total)};
    Verdict verdict = Verdict::malformed_header;
    if (source.format->decode_whole != nullptr)
        verdict = source.format->decode_whole(source.context, datagram, out);
    else
        source.format->decode_burst(source.context, {&datagram, 1}, &out, &verdict);
    if (verdict != wire::ok) return verdict;
    // Here an RDMA message is a whole message. One that brings a part of it has no place.
    return out.offset != 0 || (out.total_known && out.total != out.bytes) ? Verdict::unbound : wire::ok;
}

void MessageHeader::take_out(Message& message, const std::byte* header, std::uint32_t header_bytes) noexcept {
    message.meta_bytes = static_cast<std::uint8_t>(std::min<std::uint32_t>(header_bytes, Message::meta_bytes_max));
    std::memcpy(message.meta.data(), header, message.meta_bytes);
    MessageTable::for_each_ref(message, [&](assemble::FragmentRef& ref) {
        const std::uint32_t cut = ref.offset < header_bytes ? std::min(ref.bytes, header_bytes - ref.offset) : 0;
        ref.data += cut;
        ref.bytes -= cut;
        ref.offset = ref.offset + cut - std::min(ref.offset + cut, header_bytes);
    });
    message.received_bytes -= header_bytes;
}

void MessageHeader::shift_ranges(Message& message, std::uint32_t header_bytes) noexcept {
    assemble::ByteRange* ranges = message.has_more_ranges ? message.more_ranges->ranges.data() : message.ranges.data();
    for (std::uint32_t i = 0; i < message.range_count; ++i)
        ranges[i] = {ranges[i].begin - std::min(ranges[i].begin, header_bytes), ranges[i].end - header_bytes};
    if (message.range_count > 0 && ranges[0].end == 0) {
        std::copy(ranges + 1, ranges + message.range_count, ranges);
        --message.range_count;
    }
}

Verdict MessageHeader::strip(const MessageSource& source, Message& message, std::uint64_t total, std::uint64_t& number,
                             std::uint32_t& header_bytes) noexcept {
    const wire::FormatContext& context = source.context;
    const auto wanted =
        static_cast<std::uint32_t>(std::min<std::uint64_t>({total, context.header_read_bytes, bytes_.size()}));
    std::uint32_t there = 0;
    MessageTable::for_each_ref(message, [&](const assemble::FragmentRef& ref) {
        if (ref.offset >= wanted) return;
        const std::uint32_t bytes = std::min(ref.bytes, wanted - ref.offset);
        std::memcpy(bytes_.data() + ref.offset, ref.data, bytes);
        there += bytes;
    });
    if (there != wanted) return Verdict::unbound;
    wire::Fragment fragment;
    if (const Verdict verdict = read(source, bytes_.data(), total, fragment); verdict != wire::ok) return verdict;
    number = fragment.number;
    header_bytes = fragment.header_bytes;
    take_out(message, bytes_.data(), header_bytes);
    return wire::ok;
}

}  // namespace weir::roce
