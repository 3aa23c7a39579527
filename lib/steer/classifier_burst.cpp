// The classifier's fast way: a burst of frames, axis by axis, so that the look-ups of different packets do not wait for
// each other and no branch depends on what is in a packet. Untagged IPv4 without options goes this way; other frames
// one by one.
#include <algorithm>
#include <bit>

#include "steer/classifier.hpp"
#include "wire/bytes.hpp"
#include "wire/network.hpp"
#include "wire/roce.hpp"

namespace weir::flow {

namespace {

using wire::load_be;

constexpr std::uint32_t ip_offset = wire::ethernet_header_bytes;
constexpr std::uint32_t udp_offset = ip_offset + wire::ipv4_header_bytes;
constexpr std::uint32_t plain_bytes = udp_offset + wire::udp_header_bytes;
constexpr std::uint32_t not_plain = ~std::uint32_t{0};

/// Where a field lies in a plain frame; nothing for those of other headers.
constexpr std::optional<std::uint32_t> plain_offset(Field field) noexcept {
    switch (field) {
        case Field::eth_dst:
            return 0;
        case Field::eth_src:
            return 6;
        case Field::ipv4_tos:
            return ip_offset + 1;
        case Field::ipv4_ttl:
            return ip_offset + 8;
        case Field::ipv4_proto:
            return ip_offset + 9;
        case Field::ipv4_src:
            return ip_offset + 12;
        case Field::ipv4_dst:
            return ip_offset + 16;
        case Field::udp_src:
            return udp_offset;
        case Field::udp_dst:
            return udp_offset + 2;
        case Field::roce_qp:
            return udp_offset + wire::udp_header_bytes + 4;  // four bytes, of which the first is reserved
        default:
            return std::nullopt;
    }
}

/// Read in place of frames that are not plain, so that the loops over a burst need no exceptions.
alignas(64) constexpr std::array<std::byte, 64> nothing{};

/// Ethertype, version and header length of a plain frame, as they lie after the MAC addresses.
constexpr std::uint32_t plain_mark = std::uint32_t{wire::ethertype_ipv4} << 16U | 0x4500;

}  // namespace

void Classifier::make_plain() {
    plain_bytes_ = plain_bytes;
    for (const NarrowAxis& axis : narrow_)
        if (const auto offset = plain_offset(axis.field); offset.has_value())
            plain_narrow_.push_back({*offset, field_bits(axis.field) > 8, axis.class_of.data(), axis.bits.data()});
    for (const WideAxis& axis : wide_) {
        const auto offset = plain_offset(axis.field);
        if (!offset.has_value()) continue;
        // Rules on a queue pair also ask for RoCEv2's UDP port: what else lies there does not matter.
        if (axis.field == Field::roce_qp) plain_bytes_ = plain_bytes + wire::roce_bth_bytes;
        PlainWide plain{*offset, field_bits(axis.field) <= 32, axis.mask.low, {}, axis.bits.data()};
        for (const Wide& start : axis.starts) plain.starts.push_back(start.low);
        plain_wide_.push_back(std::move(plain));
    }
    // The ethertype of a plain frame is known.
    const auto* const type = [&]() -> const NarrowAxis* {
        for (const NarrowAxis& axis : narrow_)
            if (axis.field == Field::eth_type) return &axis;
        return nullptr;
    }();
    plain_shapes_.resize(2 * words_);
    for (const bool udp : {false, true})
        for (std::size_t word = 0; word < words_; ++word) {
            std::uint64_t bits = shapes_[Shape{0, Network::ipv4, udp}.index() * words_ + word];
            if (type != nullptr) bits &= type->bits[type->class_of[wire::ethertype_ipv4] * words_ + word];
            plain_shapes_[(udp ? words_ : 0) + word] = bits;
        }
}

/// Sets each frame's row of plain_shapes_, or not_plain.
void Classifier::start_plain(std::span<const Frame> frames, const std::byte** data, Rows& shape) const noexcept {
    constexpr std::uint16_t offset_mask = 0x1fff;
    for (std::size_t i = 0; i < frames.size(); ++i) {
        const std::byte* const at = frames[i].data;
        data[i] = at;
        const bool plain =
            frames[i].bytes >= plain_bytes_ && (load_be<std::uint32_t>(at + ip_offset - 2) & 0xffffff00U) == plain_mark;
        if (!plain) [[unlikely]] {
            data[i] = nothing.data();
            shape[i] = not_plain;
            continue;
        }
        const bool udp = std::to_integer<std::uint8_t>(at[ip_offset + 9]) == wire::ip_protocol_udp &&
                         (load_be<std::uint16_t>(at + ip_offset + 6) & offset_mask) == 0;
        shape[i] = udp ? static_cast<std::uint32_t>(words_) : 0;
    }
}

void Classifier::narrow_rows(const PlainNarrow& axis, std::size_t count, const std::byte* const* data,
                             Rows& rows) noexcept {
    if (axis.two_bytes)
        for (std::size_t i = 0; i < count; ++i) rows[i] = axis.class_of[load_be<std::uint16_t>(data[i] + axis.offset)];
    else
        for (std::size_t i = 0; i < count; ++i)
            rows[i] = axis.class_of[std::to_integer<std::uint8_t>(data[i][axis.offset])];
}

void Classifier::wide_rows(const PlainWide& axis, std::size_t count, const std::byte* const* data,
                           Rows& rows) noexcept {
    constexpr std::uint32_t mac_shift = 16;
    for (std::size_t i = 0; i < count; ++i) {
        const std::byte* const at = data[i] + axis.offset;
        const std::uint64_t value =
            (axis.address ? load_be<std::uint32_t>(at) : load_be<std::uint64_t>(at) >> mac_shift) & axis.mask;
        // As many steps for every value, and none of them a jump.
        const std::uint64_t* first = axis.starts.data();
        for (std::size_t left = axis.starts.size(); left > 1;) {
            const std::size_t half = left / 2;
            first += first[half] <= value ? half : 0;
            left -= half;
        }
        rows[i] = static_cast<std::uint32_t>(first - axis.starts.data());
    }
}

void Classifier::match_burst(std::span<const Frame> frames, std::uint32_t* winners) const noexcept {
    const std::size_t count = frames.size();
    if (words_ == 0) {
        std::fill_n(winners, count, none);
        return;
    }
    std::array<const std::byte*, burst_max> data;
    Rows shape;
    start_plain(frames, data.data(), shape);
    Rows rows;
    for (std::size_t word = 0; word < words_; ++word) {
        std::array<std::uint64_t, burst_max> bits;
        for (std::size_t i = 0; i < count; ++i) bits[i] = shape[i] == not_plain ? 0 : plain_shapes_[shape[i] + word];
        const auto narrow_down = [&](const std::uint64_t* of_axis) noexcept {
            for (std::size_t i = 0; i < count; ++i) bits[i] &= of_axis[rows[i] * words_ + word];
        };
        for (const PlainNarrow& axis : plain_narrow_) {
            narrow_rows(axis, count, data.data(), rows);
            narrow_down(axis.bits);
        }
        for (const PlainWide& axis : plain_wide_) {
            wide_rows(axis, count, data.data(), rows);
            narrow_down(axis.bits);
        }
        bool open = false;
        for (std::size_t i = 0; i < count; ++i) {
            if (word == 0) winners[i] = none;
            if (winners[i] == none && bits[i] != 0)
                winners[i] = order_[word * 64 + static_cast<std::size_t>(std::countr_zero(bits[i]))];
            open |= winners[i] == none && shape[i] != not_plain;
        }
        if (!open) break;
    }
    for (std::size_t i = 0; i < count; ++i)
        if (shape[i] == not_plain) winners[i] = match(read_fields({frames[i].data, frames[i].bytes}));
}

}  // namespace weir::flow
