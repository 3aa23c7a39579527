// libFuzzer target: any bytes as a detector packet. The first byte chooses the format; for a declared one, the next
// bytes make the description. A fragment that is accepted must lie in the packet and in its message. What the encoders
// make of any values must decode to the same values, or be refused for the right reason.
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <span>

#include "core/error.hpp"
#include "wire/encode.hpp"
#include "wire/format.hpp"

namespace {

using namespace weir::wire;

/// Takes bytes off the front of the input; zeroes once it is used up.
class Taker {
public:
    explicit Taker(std::span<const std::uint8_t> data) : data_(data) {}
    std::uint8_t byte() {
        if (data_.empty()) return 0;
        const std::uint8_t value = data_.front();
        data_ = data_.subspan(1);
        return value;
    }
    [[nodiscard]] std::span<const std::uint8_t> rest() const { return data_; }

private:
    std::span<const std::uint8_t> data_;
};

std::optional<DeclaredField> take_field(Taker& taker) {
    const std::uint8_t kind = taker.byte();
    if ((kind & 1) != 0) return std::nullopt;
    DeclaredField field{.offset = taker.byte(), .bytes = taker.byte()};
    if ((kind & 2) != 0) {
        std::uint64_t mask = 0;
        for (int i = 0; i < 8; ++i) mask = mask << 8 | taker.byte();
        field.mask = mask;
        field.shift = taker.byte();
    }
    return field;
}

DeclaredSpec take_spec(Taker& taker) {
    DeclaredSpec spec;
    spec.name = "fuzz";
    const std::uint8_t choice = taker.byte();
    spec.byte_order = (choice & 1) != 0 ? ByteOrder::big : ByteOrder::little;
    spec.header_bytes = taker.byte();
    spec.event = take_field(taker);
    spec.index = take_field(taker);
    spec.offset = take_field(taker);
    spec.total = take_field(taker);
    spec.magic = take_field(taker);
    spec.source = take_field(taker);
    spec.magic_value = taker.byte();
    if ((choice & 2) != 0) spec.payload_bytes = static_cast<std::uint32_t>(taker.byte() << 8 | taker.byte());
    if ((choice & 4) != 0) spec.packets = taker.byte();
    if ((choice & 8) != 0) spec.wrap_bits = taker.byte();
    if ((choice & 16) != 0) spec.total_bytes = static_cast<std::uint32_t>(taker.byte() << 8 | taker.byte());
    return spec;
}

SpeadOptions take_spead(Taker& taker) {
    const std::uint8_t choice = taker.byte();
    SpeadOptions spead;
    if ((choice & 1) != 0) spead.address_bits = 40;
    if ((choice & 2) != 0) spead.event_item = 0x1600;
    if ((choice & 4) != 0) spead.source_item = 0x4101;
    if ((choice & 8) != 0) spead.heap_bytes = 1U + taker.byte();
    return spead;
}

void check(const FormatContext& context, const Datagram& datagram, const Fragment& fragment) {
    const std::byte* end = datagram.payload + datagram.payload_bytes;
    if (fragment.payload < datagram.payload || fragment.payload + fragment.bytes > end) std::abort();
    const std::uint32_t total = fragment.total_known ? fragment.total : context.message_bytes_max;
    if (!fragment.total_known && context.message_bytes != 0) std::abort();
    if (total > context.message_bytes_max) std::abort();
    if (fragment.offset > total || fragment.bytes > total - fragment.offset) std::abort();
    if (fragment.bytes == 0 && total != 0) std::abort();
    if (context.sequence_bits < 32 && fragment.sequence >> context.sequence_bits != 0) std::abort();
    if (fragment.header_bytes != 0 &&
        (fragment.header < datagram.payload || fragment.header + fragment.header_bytes > end))
        std::abort();
    if (context.number_bits < 64 && fragment.number >> context.number_bits != 0) std::abort();
}

SlsOptions take_sls(Taker& taker) {
    SlsOptions options;
    const std::uint8_t choice = taker.byte();
    if ((choice & 1) != 0) options.rows = static_cast<std::uint32_t>(taker.byte() << 8 | taker.byte());
    if ((choice & 2) != 0) options.bit_depth = taker.byte();
    if ((choice & 4) != 0) options.tengiga = (choice & 8) != 0;
    options.lane_by = static_cast<LaneBy>(choice >> 4 & 3);
    if (options.lane_by > LaneBy::row) options.lane_by = LaneBy::datagram;
    options.interfaces_joined = (choice & 64) != 0;
    return options;
}

std::uint64_t take_number(Taker& taker, int bytes) {
    std::uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) value = value << 8 | taker.byte();
    return value;
}

Verdict decode(const FormatEntry& entry, const FormatContext& context, const Datagram& datagram, Fragment& fragment) {
    Verdict verdict = Verdict::count_;
    entry.decode_burst(context, {&datagram, 1}, &fragment, &verdict);
    if (verdict >= Verdict::count_) std::abort();
    if (verdict == ok) check(context, datagram, fragment);
    return verdict;
}

/// Where the packet lies in the message, or nothing if the frame has no such packet: the rule of
/// docs/reference/formats/, worked out from the rows and not from the context.
std::optional<std::uint32_t> place_of(const FormatEntry& entry, const FormatOptions& options, std::uint32_t bytes,
                                      std::uint32_t lane, std::uint32_t number) {
    const auto interfaces = static_cast<std::uint32_t>(options.interfaces);
    const bool eiger = entry.name == "eiger";
    const std::uint32_t row_bytes = eiger                      ? 64 * options.sls.bit_depth.value_or(16)
                                    : entry.name == "jungfrau" ? 2048U
                                                               : 800U;
    const std::uint32_t all_rows = eiger ? 256 : entry.name == "jungfrau" ? 512 : 400;
    const std::uint32_t rows = options.sls.rows.value_or(all_rows);
    // The rows of the whole image that this interface sends.
    std::uint32_t begin = eiger ? 0 : (all_rows - rows) / 2;
    std::uint32_t end = begin + rows;
    std::uint32_t half = 0;  // first row of the image that the interface numbers from 0
    if (interfaces == 2) {
        half = lane * (all_rows / 2);
        begin = lane == 0 ? begin : all_rows / 2;
        end = lane == 0 ? all_rows / 2 : end;
    }
    const std::uint64_t at = std::uint64_t{half} * row_bytes + std::uint64_t{number} * bytes;
    if (at < std::uint64_t{begin} * row_bytes || at >= std::uint64_t{end} * row_bytes) return std::nullopt;
    const std::uint32_t first =
        interfaces == 2 && options.sls.interfaces_joined ? (all_rows - rows) / 2 : begin;  // row at the message's start
    return static_cast<std::uint32_t>(at - std::uint64_t{first} * row_bytes);
}

void round_trip_sls(const FormatEntry& entry, const FormatOptions& options, const FormatContext& context,
                    Taker& taker) {
    SlsHeader header{.frame_number = take_number(taker, 8),
                     .packet_number = static_cast<std::uint32_t>(take_number(taker, (taker.byte() & 1) != 0 ? 1 : 4)),
                     .module_id = static_cast<std::uint16_t>(take_number(taker, 2)),
                     .row = static_cast<std::uint16_t>(take_number(taker, 2))};
    header.detector_type = entry.name == "eiger" ? 1 : entry.name == "moench" ? 5 : 3;
    const std::uint32_t bytes = 48 + context.payload_bytes;
    const auto packet = std::make_unique<std::byte[]>(bytes);
    const std::unique_ptr<std::byte[]> payload(new std::byte[context.payload_bytes]());
    if (write_sls(header, {payload.get(), context.payload_bytes}, {packet.get(), bytes}) != bytes) std::abort();
    Datagram datagram;
    datagram.payload = packet.get();
    datagram.payload_bytes = bytes;
    datagram.lane = taker.byte() & 1;
    std::uint32_t lane = datagram.lane;
    if (context.sls.lane_by == LaneBy::row) lane = header.row & 1;
    // Where the interface is not asked for, both have the same numbers; unless nobody said how to tell them apart.
    if (context.sls.lane_by == LaneBy::none) lane = 0;
    Fragment fragment;
    const Verdict verdict = decode(entry, context, datagram, fragment);
    if (entry.name == "eiger" && header.frame_number == 0) {
        if (verdict != Verdict::malformed_header) std::abort();
        return;
    }
    const auto place = place_of(entry, options, context.payload_bytes, lane, header.packet_number);
    if (verdict != (place ? ok : Verdict::malformed_packet_number)) std::abort();
    if (!place) return;
    if (fragment.offset != *place || fragment.number != header.frame_number) std::abort();
    if (fragment.header_source != header.module_id || fragment.bytes != context.payload_bytes) std::abort();
}

/// Whether two fields have a byte in common: then they cannot have any two values.
bool fields_overlap(const DeclaredSpec& spec) {
    std::array<bool, 512> taken{};
    for (const auto* field : {&spec.event, &spec.index, &spec.offset, &spec.total, &spec.magic, &spec.source}) {
        if (!*field) continue;
        for (std::uint32_t i = 0; i < (*field)->bytes; ++i) {
            bool& byte = taken[(*field)->offset + i];
            if (byte) return true;
            byte = true;
        }
    }
    return false;
}

/// What was decoded, encoded again, decodes to the same.
void round_trip_declared(const FormatEntry& entry, const DeclaredSpec& spec, const FormatContext& context,
                         const Fragment& first) {
    if (fields_overlap(spec)) return;
    const std::uint32_t bytes = context.header_bytes + first.bytes;
    const auto packet = std::make_unique<std::byte[]>(bytes);
    const DeclaredValues values{.event = first.number,
                                .index = context.payload_bytes != 0 ? first.offset / context.payload_bytes : 0,
                                .offset = first.offset,
                                .total = first.total,
                                .source = first.header_source};
    if (write_declared(spec, values, {first.payload, first.bytes}, {packet.get(), bytes}) != bytes) std::abort();
    Datagram datagram;
    datagram.payload = packet.get();
    datagram.payload_bytes = bytes;
    Fragment again;
    if (decode(entry, context, datagram, again) != ok) std::abort();
    if (again.number != first.number || again.offset != first.offset || again.total != first.total) std::abort();
    if (again.header_source != first.header_source || again.bytes != first.bytes) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Taker taker({data, size});
    const FormatEntry& entry = formats()[taker.byte() % formats().size()];
    FormatOptions options;
    options.interfaces = 1 + taker.byte() % 2;
    options.sls = take_sls(taker);
    if (entry.name == "declared") options.declared = take_spec(taker);
    if (entry.name == "spead") options.spead = take_spead(taker);
    FormatContext context;
    try {
        context = entry.make_context(options);
    } catch (const weir::core::UsageError&) {
        return 0;
    }
    if (context.sls.lane_packets != 0) round_trip_sls(entry, options, context, taker);
    const std::span<const std::uint8_t> rest = taker.rest();
    const auto packet = std::make_unique<std::byte[]>(rest.size());
    if (!rest.empty()) std::memcpy(packet.get(), rest.data(), rest.size());
    Datagram datagram;
    datagram.payload = packet.get();
    datagram.payload_bytes = static_cast<std::uint32_t>(rest.size());
    Fragment fragment;
    if (decode(entry, context, datagram, fragment) == ok && entry.name == "declared")
        round_trip_declared(entry, options.declared, context, fragment);
    return 0;
}
