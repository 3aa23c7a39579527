// Checks the description of a declared format and compiles it. Every contradiction is an error at the start, with the
// key that has to change: a description that is wrong without saying so would sort a whole run's packets wrongly.
#include "wire/formats/declared/declared.hpp"

#include <algorithm>
#include <bit>

#include "core/error.hpp"

namespace weir::wire {
namespace {

/// Says what is wrong with which key of which format.
[[noreturn]] void refuse(const DeclaredSpec& spec, const std::string& key, const std::string& what) {
    throw core::UsageError("format \"" + spec.name + "\": " + key + ": " + what);
}

std::uint64_t ones(std::uint32_t bits) {
    return bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
}

std::uint32_t width_bits(const FieldReader& reader) {
    return static_cast<std::uint32_t>(std::bit_width(reader.mask));
}

FieldReader compile(const DeclaredSpec& spec, const std::optional<DeclaredField>& given, const std::string& key) {
    if (!given) return {};
    const DeclaredField& field = *given;
    if (field.bytes < 1 || field.bytes > 8)
        refuse(spec, key + ".bytes", std::to_string(field.bytes) + " found, 1 to 8 accepted");
    if (field.offset > spec.header_bytes || field.bytes > spec.header_bytes - field.offset)
        refuse(spec, key,
               "bytes " + std::to_string(field.offset) + " to " +
                   std::to_string(std::uint64_t{field.offset} + field.bytes) + " do not lie in the header of " +
                   std::to_string(spec.header_bytes) + " bytes (header_bytes)");
    const std::uint64_t all = ones(field.bytes * 8);
    const std::uint64_t mask = field.mask.value_or(all);
    if (mask == 0 || (mask & ~all) != 0)
        refuse(spec, key + ".mask", "must be more than 0 and fit into " + std::to_string(field.bytes) + " bytes");
    if (field.shift >= 64 || mask >> field.shift == 0)
        refuse(spec, key + ".shift", std::to_string(field.shift) + " shifts the whole field out");

    // One 8-byte load that ends inside the header; in a shorter header the load is filled up with zeroes after it.
    FieldReader reader;
    const std::uint32_t load_bytes = sizeof(std::uint64_t);
    if (spec.header_bytes >= load_bytes) reader.at = std::min(field.offset, spec.header_bytes - load_bytes);
    const std::uint32_t skipped = field.offset - reader.at;
    const std::uint32_t low = spec.byte_order == ByteOrder::little ? skipped : load_bytes - skipped - field.bytes;
    reader.shift = low * 8 + field.shift;
    reader.mask = mask >> field.shift;
    return reader;
}

void check_sizes(const DeclaredSpec& spec) {
    if (spec.header_bytes < 1 || spec.header_bytes > Declared::header_bytes_max)
        refuse(spec, "header_bytes",
               std::to_string(spec.header_bytes) + " found, 1 to " + std::to_string(Declared::header_bytes_max) +
                   " accepted");
    if (!spec.event) refuse(spec, "event", "required: without it a packet belongs to no event");
    if (spec.payload_bytes && (*spec.payload_bytes == 0 || *spec.payload_bytes > 65535))
        refuse(spec, "payload_bytes", std::to_string(*spec.payload_bytes) + " found, 1 to 65535 accepted");
    if (spec.packets && *spec.packets == 0) refuse(spec, "packets", "0 found, at least 1 needed");
    if (spec.total_bytes && *spec.total_bytes == 0) refuse(spec, "total", "0 found, at least 1 needed");
}

/// index, offset, packets, total and payload_bytes say the same thing in several ways: exactly one way is needed.
void check_placement(const DeclaredSpec& spec) {
    if (spec.index && spec.offset) refuse(spec, "offset", "contradicts index; give one of them");
    const bool total = spec.total || spec.total_bytes;
    if (spec.total && spec.total_bytes) refuse(spec, "total", "either a field or a number of bytes");
    if (spec.packets && total) refuse(spec, "total", "contradicts packets; give one of them");
    if (spec.index && !spec.payload_bytes)
        refuse(spec, "payload_bytes", "required with index: a packet lies at index * payload_bytes");
    if (spec.packets && !spec.payload_bytes)
        refuse(spec, "payload_bytes", "required with packets: a message has packets * payload_bytes bytes");
    if (spec.index || spec.offset) {
        if (!spec.packets && !total)
            refuse(spec, "packets", "packets or total is required: otherwise no message would ever be complete");
        return;
    }
    if (spec.packets && *spec.packets != 1)
        refuse(spec, "packets",
               std::to_string(*spec.packets) + " found, but without index or offset every packet is a whole message");
    if (total && spec.payload_bytes)
        refuse(spec, "total", "contradicts payload_bytes where every packet is a whole message (no index, no offset)");
}

void compile_event(const DeclaredSpec& spec, FormatContext& context) {
    context.event = compile(spec, spec.event, "event");
    // The width of the counter is where it wraps, so its bits have to be neighbours.
    const std::uint64_t run = context.event.mask >> std::countr_zero(context.event.mask);
    if ((run & (run + 1)) != 0) refuse(spec, "event.mask", "the bits of the event number must be one run");
    const std::uint32_t width = width_bits(context.event);
    const std::uint32_t wrap = spec.wrap_bits.value_or(width);
    if (wrap < 1 || wrap > width)
        refuse(spec, "event.wrap_bits",
               std::to_string(wrap) + " found, 1 to " + std::to_string(width) + " accepted (the width of the field)");
    context.number_bits = static_cast<std::uint8_t>(wrap);
    if (!spec.event_part) return;
    // Seconds of 24 bits take half a year to begin again: such a number does not wrap in a run, and is not followed
    // through a wrap.
    constexpr std::uint32_t width_min = 24;
    if (spec.wrap_bits)
        refuse(spec, "event.wrap_bits", "found beside a second field, whose `count` says where it wraps");
    if (width < width_min)
        refuse(spec, "event", "the first of two fields has " + std::to_string(width) + " bits, at least 24 accepted");
    if (spec.event_count < 2 || context.event.mask >= ~std::uint64_t{0} / spec.event_count)
        refuse(
            spec, "event.count",
            std::to_string(spec.event_count) + " found; accepted: from 2 on, and so that the number fits into 64 bits");
    context.event_part = compile(spec, spec.event_part, "event");
    if (context.event_part.mask < spec.event_count - 1)
        refuse(spec, "event.count", std::to_string(spec.event_count) + " found, more than its field can hold");
    context.event_count = spec.event_count;
    context.number_bits = 64;
}

/// A narrower counter comes round before packets in disorder and packets that are missing could be told apart.
void compile_sequence(const DeclaredSpec& spec, FormatContext& context) {
    constexpr std::uint32_t width_least = 8;
    context.sequence = compile(spec, spec.sequence, "sequence");
    if (!spec.sequence) return;
    const std::uint32_t width = width_bits(context.sequence);
    if (width < width_least || width > 32)
        refuse(spec, "sequence",
               std::to_string(width) + " bits found, 8 to 32 accepted; mask and shift cut a field that is wider");
    if ((context.sequence.mask & (context.sequence.mask + 1)) != 0)
        refuse(spec, "sequence.mask",
               "the bits of the sequence number must be one run, and the shift take it to bit 0");
    context.sequence_bits = static_cast<std::uint8_t>(width);
}

/// The size of a message, where the description says it.
void set_fixed_size(const DeclaredSpec& spec, FormatContext& context) {
    std::uint64_t bytes = spec.total_bytes.value_or(0);
    if (spec.total_bytes && spec.payload_bytes) {
        context.packets_per_message = (*spec.total_bytes - 1) / *spec.payload_bytes + 1;
    } else if (!spec.index && !spec.offset) {
        context.packets_per_message = 1;  // each packet is a whole message, of whatever size
        bytes = bytes == 0 ? context.payload_bytes : bytes;
    } else if (!spec.total && !spec.total_bytes && spec.payload_bytes) {
        context.packets_per_message = spec.packets.value_or(1);
        bytes = std::uint64_t{context.packets_per_message} * context.payload_bytes;
    }
    if (bytes > context.message_bytes_max)
        refuse(spec, spec.total_bytes ? "total" : "packets",
               "a message would have " + std::to_string(bytes) +
                   " bytes, more than max_message_bytes = " + std::to_string(context.message_bytes_max));
    context.message_bytes = static_cast<std::uint32_t>(bytes);
}

}  // namespace

FormatContext Declared::make_context(const FormatOptions& options) {
    const DeclaredSpec& spec = options.declared;
    check_sizes(spec);
    check_placement(spec);
    FormatContext context;
    context.header_bytes = spec.header_bytes;
    context.header_read_bytes = spec.header_bytes;
    context.payload_bytes = spec.payload_bytes.value_or(0);
    context.message_bytes_max = options.message_bytes_max != 0 ? options.message_bytes_max : message_bytes_max_default;
    context.big_endian = spec.byte_order == ByteOrder::big;
    compile_event(spec, context);
    context.index = compile(spec, spec.index, "index");
    context.offset = compile(spec, spec.offset, "offset");
    context.total = compile(spec, spec.total, "total");
    context.source = compile(spec, spec.source, "source");
    context.carries_source = spec.source.has_value();
    if (width_bits(context.source) > 32) refuse(spec, "source", "wider than 32 bits; use mask and shift to cut it");
    compile_sequence(spec, context);
    context.magic = compile(spec, spec.magic, "magic");
    if (spec.magic && (spec.magic_value & ~context.magic.mask) != 0)
        refuse(spec, "magic.value", "can never be found: it does not fit into the field after mask and shift");
    context.magic_value = spec.magic ? spec.magic_value : 0;

    set_fixed_size(spec, context);
    return context;
}

}  // namespace weir::wire
