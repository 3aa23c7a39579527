// PSI's detectors: type, version and length are marks; which packet numbers each tile has says how it is read out.
#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "wire/format_marks.hpp"
#include "wire/formats/eiger/eiger.hpp"
#include "wire/formats/jungfrau/jungfrau.hpp"
#include "wire/formats/moench/moench.hpp"
#include "wire/formats/sls/sls_entry.hpp"

namespace weir::wire {
namespace {

/// The packet numbers of one tile: a module, half of one, or an EIGER port.
struct PacketNumbers {
    std::uint32_t first = std::numeric_limits<std::uint32_t>::max();
    std::uint32_t last = 0;
};

/// By flow, row and column in the header: two interfaces of one module differ in the row.
using Tiles = std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, PacketNumbers>;

struct SlsSample {
    Tiles tiles;
    std::size_t fit = 0;
    std::size_t other_length = 0;     ///< the header is right, the length is not
    std::uint32_t payload_bytes = 0;  ///< of the last that fits
    std::uint32_t version = 0;
};

template <class Detector>
SlsSample sls_sample(std::span<const SampledPacket> packets, std::initializer_list<std::uint32_t> payloads) {
    SlsSample out;
    for (const SampledPacket& packet : packets) {
        const Datagram datagram{.payload = packet.head.data(), .payload_bytes = packet.payload_bytes};
        if (packet.head.size() < Sls::header_bytes || !Sls::is_header<Detector>(datagram)) continue;
        const std::byte* header = packet.head.data();
        const std::uint32_t bytes = packet.payload_bytes - Sls::header_bytes;
        if (std::ranges::find(payloads, bytes) == payloads.end()) {
            ++out.other_length;
            continue;
        }
        ++out.fit;
        out.payload_bytes = bytes;
        out.version = std::to_integer<std::uint32_t>(header[Sls::version_at]);
        PacketNumbers& tile = out.tiles[{packet.flow, load_le<std::uint16_t>(header + Sls::row_at),
                                         load_le<std::uint16_t>(header + Sls::row_at + 2)}];
        const auto number = load_le<std::uint32_t>(header + Sls::packet_number_at);
        tile.first = std::min(tile.first, number);
        tile.last = std::max(tile.last, number);
    }
    return out;
}

PacketNumbers all_numbers(const Tiles& tiles) {
    PacketNumbers out;
    for (const auto& [key, tile] : tiles) {
        out.first = std::min(out.first, tile.first);
        out.last = std::max(out.last, tile.last);
    }
    return out;
}

Recognition sls_recognition(const SlsSample& sample, std::size_t packets, std::uint32_t type) {
    Recognition out;
    if (sample.fit == 0) return out;
    out.share = static_cast<double>(sample.fit) / static_cast<double>(packets);
    out.mark_bits = 32;  // type, version and length
    out.evidence.push_back("detector type " + std::to_string(type) + " and version " + std::to_string(sample.version) +
                           " at the end of the 48-byte header, and " + std::to_string(sample.payload_bytes) +
                           " bytes of pixels");
    const PacketNumbers numbers = all_numbers(sample.tiles);
    out.evidence.push_back("packet numbers " + span_text(numbers.first, numbers.last));
    if (sample.other_length != 0)
        out.doubts.push_back(std::to_string(sample.other_length) +
                             " packets have this header and another length than this detector sends");
    return out;
}

/// Packets that a readout would have and no tile shows, or nothing if a tile has packets that the readout has not.
std::optional<std::uint32_t> left_over(const FormatContext& wanted, bool two_lanes, const Tiles& tiles) {
    std::uint32_t out = 0;
    for (const auto& [key, tile] : tiles) {
        std::optional<std::uint32_t> best;
        for (std::size_t lane = 0; lane < (two_lanes ? 2U : 1U); ++lane) {
            const std::uint32_t first = wanted.sls.lanes[lane].first_packet;
            const std::uint32_t end = first + wanted.sls.lane_packets;
            if (tile.first < first || tile.last >= end) continue;
            const std::uint32_t missing = wanted.sls.lane_packets - (tile.last - tile.first + 1);
            best = std::min(best.value_or(missing), missing);
        }
        if (!best) return std::nullopt;
        out += *best;
    }
    return out;
}

/// RDMA brings header and frame in one: the length says which readout it is. `options` are tried in turn.
template <class Detector>
Recognition recognise_whole(std::span<const SampledPacket> packets, std::span<const FormatOptions> options) {
    Recognition out;
    for (const FormatOptions& wanted : options) {
        const auto context = readout_with(Detector::make_context, wanted);
        if (!context) continue;
        const auto fit = std::ranges::count_if(packets, [&](const SampledPacket& packet) {
            const Datagram datagram{.payload = packet.head.data(), .payload_bytes = packet.payload_bytes};
            return packet.head.size() >= Sls::header_bytes && Sls::is_header<Detector>(datagram) &&
                   packet.payload_bytes == Sls::header_bytes + context->message_bytes;
        });
        const double share = static_cast<double>(fit) / static_cast<double>(packets.size());
        if (share <= out.share) continue;
        out.share = share;
        out.mark_bits = 32;
        out.options = wanted;
        out.evidence = {"detector type " + std::to_string(Detector::detector_type) +
                        " in the 48-byte header, and a frame of " + std::to_string(context->message_bytes) +
                        " bytes after it"};
    }
    return out;
}

template <class Detector>
Recognition recognise_whole_module(std::span<const SampledPacket> packets) {
    std::vector<FormatOptions> options(1);
    for (std::uint32_t rows = Detector::rows - Detector::rows_step; rows > 0; rows -= Detector::rows_step) {
        options.emplace_back().sls.rows = rows;
    }
    return recognise_whole<Detector>(packets, options);
}

bool has_whole_messages(std::span<const SampledPacket> packets) {
    return !packets.empty() && packets.front().whole_message;
}

/// The readout that has all packets there are, and as few others as there can be.
template <class Detector>
Recognition recognise_module(std::span<const SampledPacket> packets) {
    if (has_whole_messages(packets)) return recognise_whole_module<Detector>(packets);
    const SlsSample sample = sls_sample<Detector>(packets, {Detector::payload_bytes});
    Recognition out = sls_recognition(sample, packets.size(), Detector::detector_type);
    std::optional<std::uint32_t> best;
    for (const int interfaces : {1, 2})
        for (std::uint32_t rows = Detector::rows; rows >= Detector::rows_step; rows -= Detector::rows_step) {
            FormatOptions options;
            options.interfaces = interfaces;
            if (rows != Detector::rows) options.sls.rows = rows;
            options.sls.lane_by = LaneBy::row;
            const auto context = readout_with(Detector::make_context, options);
            if (!context) continue;
            const auto missing = left_over(*context, interfaces == 2, sample.tiles);
            if (!missing || (best && *missing >= *best)) continue;
            best = missing;
            options.sls.lane_by = LaneBy::datagram;
            out.options = options;
        }
    if (out.share > 0 && !best) {
        out.share = 0;
        out.doubts.push_back("packet numbers that no readout of this detector has");
    }
    return out;
}

Recognition recognise_eiger(std::span<const SampledPacket> packets) {
    if (has_whole_messages(packets)) {
        std::vector<FormatOptions> options;
        for (const std::uint32_t bits : {4U, 8U, 12U, 16U, 32U}) options.emplace_back().sls.bit_depth = bits;
        return recognise_whole<Eiger>(packets, options);
    }
    const SlsSample sample = sls_sample<Eiger>(packets, {Eiger::payload_bytes_10g, Eiger::payload_bytes_1g});
    Recognition out = sls_recognition(sample, packets.size(), Eiger::detector_type);
    if (sample.fit == 0) return out;
    if (sample.payload_bytes == Eiger::payload_bytes_1g) out.options.sls.tengiga = false;
    const std::uint32_t there = all_numbers(sample.tiles).last + 1;
    std::string others;
    for (const std::uint32_t bits : {4U, 8U, 12U, 16U, 32U}) {
        FormatOptions options = out.options;
        options.sls.bit_depth = bits;
        const FormatContext whole = Eiger::make_context(options);
        const std::uint32_t packets_whole = whole.sls.lane_packets;
        // The last packets of a few frames may all be lost.
        if (packets_whole >= there && packets_whole - there <= packets_whole / 32) {
            out.options = options;
            return out;
        }
        options.sls.rows = static_cast<std::uint32_t>(std::uint64_t{Eiger::rows} * there / packets_whole);
        const auto part = readout_with(Eiger::make_context, options);
        if (!part || part->sls.lane_packets != there) continue;
        // 16 bits are what most use.
        if (bits == 16 || !out.options.sls.bit_depth) out.options = options;
        others += (others.empty() ? "" : ", ") + std::to_string(bits) + " bits and " +
                  std::to_string(*options.sls.rows) + " rows";
    }
    if (!out.options.sls.bit_depth)
        out.share = 0;
    else
        out.doubts.push_back("no packet says the bit depth; a partial readout of " + std::to_string(there) +
                             " packets may be: " + others);
    return out;
}

template <class Detector>
std::vector<HeaderField> sls_fields(std::span<const std::byte> /*head*/, std::uint32_t /*payload_bytes*/,
                                    const FormatOptions& options) {
    const FormatContext context = Detector::make_context(options);
    constexpr ByteOrder little = ByteOrder::little;
    const auto& lanes = context.sls.lanes;
    const bool two = context.sls.lane_by != LaneBy::none;
    const std::uint32_t first = two ? std::min(lanes[0].first_packet, lanes[1].first_packet) : lanes[0].first_packet;
    const std::uint32_t last = (two ? std::max(lanes[0].first_packet, lanes[1].first_packet) : first) +
                               std::max(1U, context.sls.lane_packets) - 1;
    return {{"frame number", 0, 8, little, "the event number", {}},
            {"exposure length", 8, 4, little, "in 100 ns", {}},
            {"packet number", Sls::packet_number_at, 4, little, "place of the pixels in the frame", {{first, last}}},
            {"bunch id", 16, 8, little, "", {}},
            {"timestamp", 24, 8, little, "in 100 ns", {}},
            {"module id", Sls::module_at, 2, little, "source id", {}},
            {"row", Sls::row_at, 2, little, "of the module or its half", {}},
            {"column", Sls::row_at + 2, 2, little, "", {}},
            {"reserved", Sls::row_at + 4, 2, little, "", {}},
            {"detector info", 40, 4, little, "jungfrau: storage cell and more", {}},
            {"round robin", 44, 2, little, "", {}},
            {"detector type", Sls::type_at, 1, little, "", {{Detector::detector_type, Detector::detector_type}}},
            {"header version", Sls::version_at, 1, little, "", {{1, 2}}}};
}

}  // namespace

FormatMarks jungfrau_marks() {
    return {recognise_module<Jungfrau>, sls_fields<Jungfrau>};
}

FormatMarks moench_marks() {
    return {recognise_module<Moench>, sls_fields<Moench>};
}

FormatMarks eiger_marks() {
    return {recognise_eiger, sls_fields<Eiger>};
}

}  // namespace weir::wire
