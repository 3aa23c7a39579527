// Puts the pieces of IP datagrams together, with DPDK's librte_ip_frag. One per rx lcore, which alone uses it; all
// memory is taken at construction. Every piece is one received packet, and ends either in a whole datagram or in a
// counter.
//
// What the library does not tell is found out here: why it gave a piece up, whether a source uses one identification
// for datagram after datagram, and how many buffers are held. docs/reference/NETWORK.md describes what comes of it.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "port/buffers.hpp"
#include "wire/fragment.hpp"
#include "wire/packet_counter.hpp"

struct rte_ip_frag_tbl;
struct rte_ip_frag_death_row;

namespace weir::port {

class IpReassembly {
public:
    /// The library's limit (RTE_LIBRTE_IP_FRAG_MAX_FRAG of the distribution's build): pieces of one datagram.
    static constexpr std::uint32_t pieces_max = 8;

    struct Config {
        std::uint32_t datagrams_max = 64;                ///< of which pieces are held
        std::uint32_t buffers_max = 256;                 ///< pieces held
        core::TimeNs timeout_ns = 20 * core::ns_per_ms;  ///< from a datagram's first piece
        /// From the start of a whole datagram's first buffer so many bytes lie in one piece, if the datagram has them.
        std::uint32_t header_bytes = 640;
        int node = -1;  ///< NUMA node that its table lies on, if there is room; -1: any
    };
    /// A piece that was given up, and the counter in which its packet ends. The caller gives the buffer back.
    struct Ended {
        rte_mbuf* mbuf = nullptr;
        wire::PacketCounter counter = wire::PacketCounter::malformed_ip_fragment;
    };
    struct Counts {
        std::uint64_t fragments = 0;              ///< pieces taken
        std::uint64_t datagrams = 0;              ///< put together
        std::uint64_t reused_identification = 0;  ///< of these, with the identification of the one before
    };

    /// Throws core::RunError when EAL memory does not suffice.
    explicit IpReassembly(const Config& config);
    ~IpReassembly();
    IpReassembly(const IpReassembly&) = delete;
    IpReassembly& operator=(const IpReassembly&) = delete;

    /// Takes a packet that is a piece of a datagram: wire::parse_frame answered malformed_ip_fragment and filled
    /// `piece`. `now` never runs backwards. Returns the whole datagram, if this was what it lacked: a chain of as many
    /// buffers as it had pieces, beginning with an Ethernet header that parse_frame can read. What ended by this is in
    /// `ended` until the next call.
    rte_mbuf* add(const Packet& packet, const wire::Datagram& piece, core::TimeNs now) noexcept;
    /// Gives up what waits since `now` - timeout, a bounded part per call. It shows in `ended`.
    void expire(core::TimeNs now) noexcept;
    /// Gives up what is held, a bounded part per call, until `held` is 0.
    void flush() noexcept;

    [[nodiscard]] std::span<const Ended> ended() const noexcept { return {ended_.data(), ended_count_}; }
    [[nodiscard]] std::uint32_t held() const noexcept { return held_; }

    // For any thread.
    [[nodiscard]] Counts counts() const noexcept;
    /// The first source address that was seen using one identification again; empty if there is none.
    [[nodiscard]] std::string reusing_source() const;
    /// EAL memory for one of this configuration.
    [[nodiscard]] static std::uint64_t memory_bytes(const Config& config) noexcept;

private:
    /// The addresses of a datagram, IPv4 in the first 4 bytes of each.
    struct Pair {
        std::array<std::byte, 32> bytes{};
        bool ipv6 = false;
        bool operator==(const Pair&) const = default;
    };
    struct Key {
        Pair pair;
        std::uint32_t identification = 0;
        bool operator==(const Key&) const = default;
    };
    /// A datagram with too many pieces: those that are still to come have nothing to join.
    struct Condemned {
        Key key;
        core::TimeNs until_ns = 0;
    };
    static constexpr std::uint32_t condemned_max = 16;
    static constexpr std::uint32_t pairs_max = 256;  ///< of addresses whose last identification is remembered

    [[nodiscard]] static Key key_of(const std::byte* ip) noexcept;
    [[nodiscard]] static Key key_of(const rte_mbuf* mbuf) noexcept;
    static void prepare(rte_mbuf* mbuf, const wire::Datagram& piece) noexcept;
    [[nodiscard]] bool is_condemned(const Key& key, core::TimeNs now) const noexcept;
    [[nodiscard]] wire::PacketCounter cause_of(const Key& key) const noexcept;
    void take_row(const Key* own, bool failed, core::TimeNs now) noexcept;
    void end(rte_mbuf* mbuf, wire::PacketCounter counter) noexcept;
    [[nodiscard]] bool finish(rte_mbuf* whole) const noexcept;
    void end_whole(rte_mbuf* whole, wire::PacketCounter counter) noexcept;
    void remember(const Key& key) noexcept;

    Config config_;
    rte_ip_frag_tbl* table_;
    std::unique_ptr<rte_ip_frag_death_row> row_;
    std::uint32_t held_ = 0;
    core::TimeNs due_ns_ = 0;  ///< until then nothing held is due
    std::vector<Ended> ended_;
    std::uint32_t ended_count_ = 0;
    std::array<Condemned, condemned_max> condemned_{};
    std::uint32_t next_condemned_ = 0;
    core::TimeNs condemned_until_ns_ = 0;
    std::vector<std::optional<Key>> last_;  ///< by a hash of the addresses
    std::atomic<std::uint64_t> fragments_{0};
    std::atomic<std::uint64_t> datagrams_{0};
    std::atomic<std::uint64_t> reused_{0};
    Pair reusing_;  ///< written once, before `reused_` leaves 0
};

}  // namespace weir::port
