#include "bench/packet_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "wire/bytes.hpp"
#include "wire/encode.hpp"

namespace weir::bench {
namespace {

constexpr std::uint32_t magic = 0x42726577;
constexpr std::uint32_t sources_max = 64;
constexpr std::uint64_t message_bytes_max = 16U << 20;  // what weir's formats believe unless told otherwise

/// SplitMix64: neighbours have nothing in common.
constexpr std::uint64_t mix(std::uint64_t value) noexcept {
    value += 0x9e3779b97f4a7c15;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
    value = (value ^ value >> 27) * 0x94d049bb133111eb;
    return value ^ value >> 31;
}

std::uint64_t stamp_check(std::uint32_t trial, std::uint64_t sequence, std::uint64_t sent) noexcept {
    return mix(mix(sequence ^ std::uint64_t{trial} << 32) ^ sent);
}

}  // namespace

void check(const PacketPlan& plan) {
    core::require(plan.bytes >= PacketPlan::bytes_min && plan.bytes <= PacketPlan::bytes_max,
                  fmt::format("packets of {} bytes: they can have {} to {} bytes of UDP payload", plan.bytes,
                              PacketPlan::bytes_min, PacketPlan::bytes_max));
    core::require(plan.packets >= 1 && plan.message_bytes() <= message_bytes_max,
                  fmt::format("messages of {} packets: at least 1, and no more than {} MiB", plan.packets,
                              message_bytes_max >> 20));
    core::require(!plan.content || plan.content->size() >= plan.body_bytes(),
                  fmt::format("a packet of {} bytes carries more than the {} bytes that there are to be sent",
                              plan.bytes, plan.content ? plan.content->size() : 0));
    core::require(plan.sources >= 1 && plan.sources <= sources_max,
                  fmt::format("{} sources: at least 1, at most {}", plan.sources, sources_max));
}

PacketMaker::PacketMaker(const PacketPlan& plan) : plan_(plan), pattern_(plan.content ? 0 : plan.body_bytes()) {
    for (std::size_t at = 0; at < pattern_.size(); at += 8) {
        const std::uint64_t word = mix(at);
        std::memcpy(pattern_.data() + at, &word, std::min<std::size_t>(8, pattern_.size() - at));
    }
}

std::span<const std::byte> PacketMaker::body(std::uint64_t sequence) const noexcept {
    if (!plan_.content) return pattern_;
    const std::uint64_t pieces = plan_.content->size() / plan_.body_bytes();
    return {plan_.content->data() + sequence % pieces * plan_.body_bytes(), plan_.body_bytes()};
}

void PacketMaker::write_head(std::uint64_t sequence, core::TimeNs now, std::byte* out) const noexcept {
    const std::uint64_t message = sequence / plan_.packets;
    const std::uint64_t event = message / plan_.sources;
    const auto place = static_cast<std::uint32_t>(sequence - message * plan_.packets);
    wire::write_ejfat({.data_id = static_cast<std::uint16_t>(message - event * plan_.sources),
                       .offset = place * plan_.payload_bytes(),
                       .total = static_cast<std::uint32_t>(plan_.message_bytes()),
                       .event = event + 1},
                      {}, {out, PacketPlan::header_bytes});
    std::byte* stamp = out + PacketPlan::header_bytes;
    const auto sent = static_cast<std::uint64_t>(now);
    wire::store_le(stamp, magic);
    wire::store_le(stamp + 4, plan_.trial);
    wire::store_le(stamp + 8, sequence);
    wire::store_le(stamp + 16, sent);
    wire::store_le(stamp + 24, stamp_check(plan_.trial, sequence, sent));
}

PacketChecker::PacketChecker(const PacketPlan& plan) : maker_(plan) {}

PacketChecker::Packet PacketChecker::check(std::span<const std::byte> payload) const noexcept {
    if (payload.size() < PacketPlan::head_bytes) return {};
    const std::byte* stamp = payload.data() + PacketPlan::header_bytes;
    if (wire::load_le<std::uint32_t>(stamp) != magic) return {};
    if (wire::load_le<std::uint32_t>(stamp + 4) != maker_.plan().trial) return {};
    const auto sequence = wire::load_le<std::uint64_t>(stamp + 8);
    const auto sent = wire::load_le<std::uint64_t>(stamp + 16);
    if (payload.size() != maker_.plan().bytes ||
        wire::load_le<std::uint64_t>(stamp + 24) != stamp_check(maker_.plan().trial, sequence, sent) ||
        !same_body(payload.data() + PacketPlan::head_bytes, sequence))
        return {.is = Is::damaged, .sequence = 0, .sent_ns = 0};
    return {.is = Is::whole, .sequence = sequence, .sent_ns = static_cast<core::TimeNs>(sent)};
}

bool PacketChecker::same_body(const std::byte* body, std::uint64_t sequence) const noexcept {
    const std::span<const std::byte> should = maker_.body(sequence);
    if (sequence % 64 == 0) return std::memcmp(body, should.data(), should.size()) == 0;
    // The last word, which a cut packet lacks, and three that move from packet to packet.
    std::uint64_t at = should.size() - 8;
    for (int i = 0; i < 4; ++i) {
        if (wire::load_le<std::uint64_t>(body + at) != wire::load_le<std::uint64_t>(should.data() + at)) return false;
        at = (sequence * 3 + static_cast<std::uint64_t>(i)) * 4099 % (should.size() - 7);
    }
    return true;
}

}  // namespace weir::bench
