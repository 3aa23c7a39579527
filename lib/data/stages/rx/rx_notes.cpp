#include "stages/rx/rx_notes.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include "core/one_writer.hpp"
#include "stages/rx/stream_runtime.hpp"
#include "wire/bytes.hpp"

namespace weir::stages {

using wire::PacketCounter;

namespace {

/// Whether a datagram that the format's decoder takes is one of it: not where nearly everything is taken.
bool proves_something(const StreamRuntime& stream) noexcept {
    if (stream.roce || stream.numbered_by_arrival) return false;
    const wire::FormatContext& context = stream.context;
    return !stream.format->described || context.magic.mask != 0 ||
           (context.payload_bytes != 0 && context.index.mask != 0);
}

/// A few bits of an IPv6 address; those that differ between hosts of a network among them.
std::uint32_t folded(const std::byte* ipv6) noexcept {
    std::uint32_t sum = 0;
    for (std::size_t at = 0; at < 16; at += 4) sum = sum * 31 + wire::load_be<std::uint32_t>(ipv6 + at);
    return sum;
}

}  // namespace

RxNotes::RxNotes(const std::vector<StreamRuntime>& streams, std::size_t sources)
    : streams_(streams), refused_(sources), from_(sources) {}

SenderAddress RxNotes::load(const Address& address) noexcept {
    SenderAddress out{address.ipv6.load(std::memory_order_relaxed), {}};
    for (std::size_t i = 0; i < 2; ++i) {
        const std::uint64_t half = address.halves[i].load(std::memory_order_relaxed);
        std::memcpy(out.bytes.data() + 8 * i, &half, sizeof half);
    }
    return out;
}

void RxNotes::store(Address& address, const wire::Datagram& datagram) noexcept {
    std::array<std::byte, 16> bytes{};
    if (datagram.ipv6)
        std::copy_n(datagram.ipv6_src(), bytes.size(), bytes.begin());
    else
        for (std::size_t i = 0; i < 4; ++i) bytes[i] = static_cast<std::byte>(datagram.src >> (24 - 8 * i));
    for (std::size_t i = 0; i < 2; ++i) {
        std::uint64_t half = 0;
        std::memcpy(&half, bytes.data() + 8 * i, sizeof half);
        address.halves[i].store(half, std::memory_order_relaxed);
    }
    address.ipv6.store(datagram.ipv6, std::memory_order_relaxed);
}

void RxNotes::came_from(std::uint32_t source, const wire::Datagram& datagram) noexcept {
    store(from_[source], datagram);
}

void RxNotes::unmatched_udp(const wire::Datagram& datagram, const std::byte* frame) noexcept {
    add(false, datagram.dport, datagram);
    constexpr std::uint32_t looked_at = 8;
    note(wire::encapsulation_of_udp(datagram.dport, {datagram.payload, std::min(datagram.payload_bytes, looked_at)},
                                    static_cast<std::uint32_t>(datagram.payload - frame)));
}

void RxNotes::foreign(std::span<const std::byte> frame) noexcept {
    note(wire::encapsulation_of(frame));
}

void RxNotes::note(const std::optional<wire::Encapsulated>& encapsulated) noexcept {
    if (encapsulated)
        encapsulated_.add(std::uint64_t{encapsulated->front_bytes} << 8U |
                          static_cast<std::uint64_t>(encapsulated->by));
}

/// A kernel or a card hands datagrams over as one (GRO, GSO): so many of equal size, each with a header of its own. 0:
/// this is none.
std::uint32_t RxNotes::merged_of(const StreamRuntime& stream, const wire::Datagram& datagram,
                                 std::uint32_t readable) noexcept {
    constexpr std::uint32_t most = 64;
    if (!proves_something(stream)) return 0;
    for (std::uint32_t count = 2; count <= most; ++count) {
        const std::uint32_t bytes = datagram.payload_bytes / count;
        if (bytes == 0) break;
        if (bytes * count != datagram.payload_bytes || 2 * bytes > readable) continue;
        std::array<wire::Datagram, 2> parts{datagram, datagram};
        parts[0].payload_bytes = parts[1].payload_bytes = bytes;
        parts[1].payload += bytes;
        std::array<wire::Fragment, 2> fragments;
        std::array<wire::Verdict, 2> verdicts{};
        stream.format->decode_burst(stream.context, parts, fragments.data(), verdicts.data());
        if (verdicts[0] == wire::ok && verdicts[1] == wire::ok) return count;
    }
    return 0;
}

void RxNotes::unmatched_roce(const wire::Datagram& datagram, std::uint32_t qp) noexcept {
    add(true, qp, datagram);
}

void RxNotes::add(bool roce, std::uint32_t key, const wire::Datagram& datagram) noexcept {
    const std::uint32_t address = datagram.ipv6 ? folded(datagram.ipv6_src()) : datagram.src;
    const std::uint64_t value = std::uint64_t{roce} << 63U | std::uint64_t{datagram.ipv6} << 62U |
                                std::uint64_t{key & 0xff'ffffU} << 32U | address;
    const Senders::Place place = senders_.add(value);
    if (!place.taken) return;
    store(addresses_[place.index], datagram);
    reads_as_[place.index].store(roce ? no_stream : stream_that_reads(datagram), std::memory_order_relaxed);
}

std::uint16_t RxNotes::stream_that_reads(const wire::Datagram& datagram) noexcept {
    // A port scan takes a place with each packet.
    constexpr std::uint32_t tries_max = 4096;
    if (tries_ == tries_max) return no_stream;
    ++tries_;
    for (std::size_t i = 0; i < streams_.size(); ++i) {
        if (!proves_something(streams_[i])) continue;
        wire::Fragment fragment;
        wire::Verdict verdict = PacketCounter::malformed_header;
        streams_[i].format->decode_burst(streams_[i].context, {&datagram, 1}, &fragment, &verdict);
        if (verdict == wire::ok || verdict == PacketCounter::control) return static_cast<std::uint16_t>(i);
    }
    return no_stream;
}

bool RxNotes::fits_other_byte_order(const StreamRuntime& stream, const wire::Datagram& datagram) const noexcept {
    if (!stream.other_byte_order) return false;
    wire::Fragment fragment;
    wire::Verdict verdict = PacketCounter::malformed_header;
    stream.format->decode_burst(*stream.other_byte_order, {&datagram, 1}, &fragment, &verdict);
    return verdict == wire::ok;
}

void RxNotes::refused(std::uint16_t stream, std::uint32_t source, wire::Verdict verdict, const wire::Datagram& datagram,
                      std::uint32_t readable, const wire::Fragment& fragment) noexcept {
    if (verdict == PacketCounter::control) return;
    const StreamRuntime& of = streams_[stream];
    const std::uint64_t high = std::uint64_t{stream} << 32U;
    if (!of.source_in_header) {
        core::add(refused_[source]);
        store(from_[source], datagram);
    }
    if (verdict == PacketCounter::malformed_source) {
        unknown_ids_.add(high | fragment.header_source);
        return;
    }
    if (verdict == PacketCounter::malformed_payload_length) {
        wrong_lengths_.add(high | datagram.payload_bytes);
        if (const std::uint32_t count = merged_of(of, datagram, readable); count > 0)
            merged_.add(high | std::uint64_t{count} << 16U | (datagram.payload_bytes & 0xffffU));
    }
    if (fits_other_byte_order(of, datagram)) {
        headers_.add(high | other_byte_order);
    } else if (verdict == PacketCounter::malformed_header) {
        const std::span<const std::byte> bytes(datagram.payload, std::min(datagram.payload_bytes, readable));
        headers_.add(high | wire::recognise(bytes, datagram.payload_bytes).packed());
    }
}

std::vector<RxNotes::Sender> RxNotes::senders() const {
    std::vector<Sender> out;
    const auto entries = senders_.entries();
    for (std::size_t i = 0; i < entries.size(); ++i) {
        if (entries[i].count == 0) continue;
        const std::uint64_t value = entries[i].value;
        out.push_back({(value >> 63U) != 0, static_cast<std::uint32_t>(value >> 32U) & 0xff'ffffU, load(addresses_[i]),
                       entries[i].count, reads_as_[i].load(std::memory_order_relaxed)});
    }
    return out;
}

}  // namespace weir::stages
