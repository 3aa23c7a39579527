// The SPEAD encoder and the format's options.
#include "wire/encode.hpp"
#include "core/error.hpp"
#include "wire/formats/spead/spead.hpp"

namespace weir::wire {

namespace {

void check_item(const char* key, std::uint32_t id, std::uint32_t address_bits) {
    const std::uint32_t last = (1U << (63 - address_bits)) - 1;
    if (id > last)
        throw core::UsageError(std::string(key) + ": found " + std::to_string(id) + "; accepted: an item id up to " +
                               std::to_string(last) + " with address_bits = " + std::to_string(address_bits));
    if (id > Spead::heap_counter && id <= Spead::stream_control)
        throw core::UsageError(
            std::string(key) + ": found " + std::to_string(id) +
            "; accepted: 1, the heap counter, or an item of the sender's: 2 to 6 are the heap's own");
}

}  // namespace

FormatContext Spead::make_context(const FormatOptions& options) {
    const SpeadOptions& spead = options.spead;
    if (spead.address_bits.has_value() && spead.address_bits != 48U && spead.address_bits != 40U)
        throw core::UsageError("address_bits: found " + std::to_string(*spead.address_bits) + "; accepted: 48 or 40");
    const std::uint32_t narrowest = spead.address_bits.value_or(40);  // whose item ids are the widest
    check_item("event_item", spead.event_item, narrowest);
    check_item("source_item", spead.source_item, narrowest);
    if (spead.event_item == null)
        throw core::UsageError("event_item: found 0; accepted: an item that carries a value; 0 is the null item");
    const std::uint32_t bytes_max =
        options.message_bytes_max != 0 ? options.message_bytes_max : message_bytes_max_default;
    if (spead.heap_bytes > bytes_max)
        throw core::UsageError("heap_bytes: found " + std::to_string(spead.heap_bytes) +
                               "; accepted: at most max_message_bytes = " + std::to_string(bytes_max));
    FormatContext context;
    context.header_bytes = 0;  // differs from packet to packet
    context.header_read_bytes = header_bytes + items_max * item_bytes;
    context.message_bytes = spead.heap_bytes;
    context.message_bytes_max = bytes_max;
    context.number_bits = static_cast<std::uint8_t>(spead.address_bits.value_or(48));
    context.carries_source = spead.source_item != null;
    context.spead = {static_cast<std::uint8_t>(spead.address_bits.value_or(0)), spead.event_item, spead.source_item};
    return context;
}

std::size_t spead_front_bytes(const SpeadHeader& header) noexcept {
    const std::size_t items = 3 + (header.heap_bytes ? 1 : 0) + header.items.size();
    return Spead::header_bytes + items * Spead::item_bytes;
}

std::size_t write_spead(const SpeadHeader& header, std::span<const std::byte> payload,
                        std::span<std::byte> out) noexcept {
    const std::size_t front_bytes = spead_front_bytes(header);
    const std::size_t bytes = front_bytes + payload.size();
    if (out.size() < bytes) return 0;
    std::byte* at = out.data();
    store_be(at, Spead::magic);
    at[2] = static_cast<std::byte>(8 - header.address_bits / 8);
    at[3] = static_cast<std::byte>(header.address_bits / 8);
    store_be(at + 4, std::uint16_t{0});
    store_be(at + 6, static_cast<std::uint16_t>((front_bytes - Spead::header_bytes) / Spead::item_bytes));
    at += Spead::header_bytes;
    const auto put = [&at, &header](std::uint64_t id, std::uint64_t value, bool immediate) {
        const std::uint64_t mask = (std::uint64_t{1} << header.address_bits) - 1;
        const std::uint64_t id_bits = (id << header.address_bits) & ~Spead::immediate;
        store_be(at, (immediate ? Spead::immediate : 0) | id_bits | (value & mask));
        at += Spead::item_bytes;
    };
    put(Spead::heap_counter, header.heap, true);
    if (header.heap_bytes) put(Spead::heap_size, *header.heap_bytes, true);
    put(Spead::heap_offset, header.offset, true);
    put(Spead::payload_length, header.payload_bytes.value_or(payload.size()), true);
    for (const SpeadItem& item : header.items) put(item.id, item.value, item.immediate);
    if (!payload.empty()) std::memcpy(at, payload.data(), payload.size());
    return bytes;
}

}  // namespace weir::wire
