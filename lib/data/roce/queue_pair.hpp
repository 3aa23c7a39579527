// What a RoCE responder is told about a queue pair: who may send to it, from which PSN on, into which memory. Plain
// data without heap, so that it can be handed to a running rx lcore.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "wire/format.hpp"
#include "wire/roce.hpp"

namespace weir::roce {

enum class Service : std::uint8_t {
    listen,  ///< nothing is answered; what PSN arithmetic proves is kept (Listener)
    rc,      ///< reliable connection: acknowledged, in order, repeated until whole
    uc,      ///< unreliable connection: after a loss nothing until the next message starts
    ud,      ///< datagrams
};

enum class QueuePairState : std::uint8_t {
    reset,  ///< not connected: everything is dropped
    ready,
    error,  ///< a fatal NAK was sent: everything is flushed until it is configured anew
};

/// Memory that a peer may write to: `count` buffers of `bytes`, `stride` apart from `va` on, under one R_Key. A WRITE
/// lies in one of them.
struct Region {
    std::uint64_t va = 0;
    std::uint64_t bytes = 0;
    std::uint32_t rkey = 0;
    std::uint32_t count = 1;
    std::uint64_t stride = 0;  ///< at least `bytes` where count > 1
    bool remote_write = true;  ///< permission
    bool backed = false;       ///< WRITEs are copied into real memory, from which events are taken

    /// Set by who has the memory of a backed region: for each buffer, whether an event still takes its bytes from
    /// there.
    const std::uint8_t* lent = nullptr;

    /// The buffer that `at` lies in, and where in it.
    [[nodiscard]] constexpr std::uint32_t index_of(std::uint64_t at) const noexcept {
        return count > 1 ? static_cast<std::uint32_t>((at - va) / stride) : 0;
    }
    [[nodiscard]] constexpr std::uint64_t offset_of(std::uint64_t at) const noexcept {
        return count > 1 ? (at - va) % stride : at - va;
    }
    /// Whether `length` bytes from `at` on lie in one buffer.
    [[nodiscard]] constexpr bool holds(std::uint64_t at, std::uint64_t length) const noexcept {
        if (at < va || length > bytes) return false;
        std::uint64_t offset = at - va;
        if (count > 1) {
            if (offset / stride >= count) return false;
            offset %= stride;
        }
        return offset <= bytes - length;
    }
    bool operator==(const Region&) const = default;
};

struct QueuePair {
    static constexpr std::uint32_t regions_max = 16;

    Service service = Service::rc;
    /// Of the peer, where answers go; without it an RC queue pair answers nothing and no congestion is notified.
    std::optional<std::uint32_t> peer_qp{};
    /// wire::roce_address of the peer; without it the first sender is the peer.
    std::optional<std::uint64_t> peer_address{};
    /// The first PSN; without it that of the first packet that starts a message and is borne out by a second one.
    std::optional<std::uint32_t> psn{};
    std::uint32_t path_mtu = 0;  ///< 256 .. 4096; 0: as the first message of several packets shows it
    std::uint16_t pkey = wire::roce_pkey_default;
    std::uint32_t qkey = 0;       ///< ud
    std::uint8_t rnr_timer = 12;  ///< code of the RNR NAK, see rnr_timer_code
    /// An acknowledgement that was not asked for: after so many packets, and at the end of each message. 0: never.
    std::uint32_t ack_every = 0;
    /// Congestion notifications to the peer are at least so far apart; 0: none are sent.
    std::uint32_t congestion_interval_us = 50;
    std::uint32_t message_bytes = 0;  ///< of every message, if configured
    std::uint32_t max_message_bytes = wire::message_bytes_max_default;
    bool needs_immediate = false;  ///< a message without makes no event
    std::uint32_t region_count = 0;
    std::array<Region, regions_max> regions{};
};

/// The 5-bit code of an RNR NAK timer (1: 10 us ... 31: 491520 us; 0: 655360 us), from Linux
/// include/rdma/ib_verbs.h (IB_RNR_TIMER_*). The shortest one that is not shorter than `microseconds`.
[[nodiscard]] std::uint8_t rnr_timer_code(std::uint32_t microseconds) noexcept;
/// And back.
[[nodiscard]] std::uint32_t rnr_timer_us(std::uint8_t code) noexcept;

}  // namespace weir::roce
