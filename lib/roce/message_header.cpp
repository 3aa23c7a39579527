#include "roce/message_header.hpp"

#include <algorithm>
#include <cstring>

#include "assemble/message_table.hpp"
#include "core/error.hpp"
#include "wire/fragment.hpp"

namespace weir::roce {

using assemble::Message;
using assemble::MessageTable;
using wire::Verdict;

void MessageHeader::check(const MessageSource& source) {
    if (source.number_by == NumberBy::format && (source.format == nullptr || !source.context.carries_number))
        throw core::UsageError("event = \"format\": the stream's format carries no event number");
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
    const wire::Datagram datagram{.payload = bytes_.data(), .payload_bytes = static_cast<std::uint32_t>(total)};
    wire::Fragment fragment;
    Verdict verdict = Verdict::malformed_header;
    source.format->decode_burst(context, {&datagram, 1}, &fragment, &verdict);
    if (verdict != wire::ok) return verdict;
    // Here an RDMA message is a whole message. One that brings a part of it has no place.
    if (fragment.offset != 0 || (fragment.total_known && fragment.total != fragment.bytes)) return Verdict::unbound;
    number = fragment.number;
    header_bytes = fragment.header_bytes;
    message.meta_bytes = static_cast<std::uint8_t>(std::min<std::uint32_t>(header_bytes, Message::meta_bytes_max));
    std::memcpy(message.meta.data(), bytes_.data(), message.meta_bytes);
    MessageTable::for_each_ref(message, [&](assemble::FragmentRef& ref) {
        const std::uint32_t cut = ref.offset < header_bytes ? std::min(ref.bytes, header_bytes - ref.offset) : 0;
        ref.data += cut;
        ref.bytes -= cut;
        ref.offset = ref.offset + cut - std::min(ref.offset + cut, header_bytes);
    });
    message.received_bytes -= header_bytes;
    return wire::ok;
}

}  // namespace weir::roce
