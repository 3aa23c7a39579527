#include "steer/plain_frames.hpp"

#include <algorithm>
#include <bit>
#include <optional>

#include "wire/bytes.hpp"
#include "wire/network.hpp"
#include "wire/roce.hpp"

namespace weir::steer {

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

PlainFrames::PlainFrames(const RuleAxes& axes)
    : order_(axes.order), words_(axes.words), bytes_(plain_bytes), shapes_(2 * axes.words) {
    for (const RuleAxes::Narrow& axis : axes.narrow)
        if (const auto offset = plain_offset(axis.field); offset.has_value())
            narrow_.push_back({*offset, field_bits(axis.field) > 8, axis.class_of.data(), axis.bits.data()});
    for (const RuleAxes::Intervals& axis : axes.wide) {
        const auto offset = plain_offset(axis.field);
        if (!offset.has_value()) continue;
        // Rules on a queue pair also ask for RoCEv2's UDP port: what else lies there does not matter.
        if (axis.field == Field::roce_qp) bytes_ = plain_bytes + wire::roce_bth_bytes;
        Intervals plain{*offset, field_bits(axis.field) <= 32, axis.mask.low, {}, axis.bits.data()};
        for (const Wide& start : axis.starts) plain.starts.push_back(start.low);
        wide_.push_back(std::move(plain));
    }
    // The ethertype of a plain frame is known.
    const auto* const type = [&]() -> const RuleAxes::Narrow* {
        for (const RuleAxes::Narrow& axis : axes.narrow)
            if (axis.field == Field::eth_type) return &axis;
        return nullptr;
    }();
    for (const bool udp : {false, true})
        for (std::size_t word = 0; word < words_; ++word) {
            std::uint64_t bits = axes.shapes[Shape{0, Network::ipv4, udp}.index() * words_ + word];
            if (type != nullptr) bits &= type->bits[type->class_of[wire::ethertype_ipv4] * words_ + word];
            shapes_[(udp ? words_ : 0) + word] = bits;
        }
}

/// Sets each frame's row of shapes_, or not_plain. Whether all are plain.
bool PlainFrames::start(std::span<const FrameBytes> frames, const std::byte** data, Rows& shape) const noexcept {
    constexpr std::uint16_t offset_mask = 0x1fff;
    bool all_plain = true;
    for (std::size_t i = 0; i < frames.size(); ++i) {
        const std::byte* const at = frames[i].data;
        data[i] = at;
        const bool plain =
            frames[i].bytes >= bytes_ && (load_be<std::uint32_t>(at + ip_offset - 2) & 0xffffff00U) == plain_mark;
        if (!plain) [[unlikely]] {
            data[i] = nothing.data();
            shape[i] = not_plain;
            all_plain = false;
            continue;
        }
        const bool udp = std::to_integer<std::uint8_t>(at[ip_offset + 9]) == wire::ip_protocol_udp &&
                         (load_be<std::uint16_t>(at + ip_offset + 6) & offset_mask) == 0;
        shape[i] = udp ? static_cast<std::uint32_t>(words_) : 0;
    }
    return all_plain;
}

void PlainFrames::narrow_rows(const Narrow& axis, std::size_t count, const std::byte* const* data,
                              Rows& rows) noexcept {
    if (axis.two_bytes)
        for (std::size_t i = 0; i < count; ++i) rows[i] = axis.class_of[load_be<std::uint16_t>(data[i] + axis.offset)];
    else
        for (std::size_t i = 0; i < count; ++i)
            rows[i] = axis.class_of[std::to_integer<std::uint8_t>(data[i][axis.offset])];
}

void PlainFrames::wide_rows(const Intervals& axis, std::size_t count, const std::byte* const* data,
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

bool PlainFrames::match(std::span<const FrameBytes> frames, std::uint32_t* winners) const noexcept {
    const std::size_t count = frames.size();
    if (words_ == 0) {
        std::fill_n(winners, count, no_rule);
        return true;
    }
    std::array<const std::byte*, burst_max> data;
    Rows shape;
    const bool all_plain = start(frames, data.data(), shape);
    Rows rows;
    for (std::size_t word = 0; word < words_; ++word) {
        std::array<std::uint64_t, burst_max> bits;
        for (std::size_t i = 0; i < count; ++i) bits[i] = shape[i] == not_plain ? 0 : shapes_[shape[i] + word];
        const auto narrow_down = [&](const std::uint64_t* of_axis) noexcept {
            for (std::size_t i = 0; i < count; ++i) bits[i] &= of_axis[rows[i] * words_ + word];
        };
        for (const Narrow& axis : narrow_) {
            narrow_rows(axis, count, data.data(), rows);
            narrow_down(axis.bits);
        }
        for (const Intervals& axis : wide_) {
            wide_rows(axis, count, data.data(), rows);
            narrow_down(axis.bits);
        }
        bool open = false;
        for (std::size_t i = 0; i < count; ++i) {
            if (word == 0) winners[i] = no_rule;
            if (winners[i] == no_rule && bits[i] != 0)
                winners[i] = order_[word * 64 + static_cast<std::size_t>(std::countr_zero(bits[i]))];
            open |= winners[i] == no_rule && shape[i] != not_plain;
        }
        if (!open) break;
    }
    for (std::size_t i = 0; !all_plain && i < count; ++i)
        if (shape[i] == not_plain) winners[i] = undecided;
    return all_plain;
}

}  // namespace weir::steer
