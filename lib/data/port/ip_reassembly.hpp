// Puts the pieces of IP datagrams together. One per rx lcore, which alone uses it; all memory is taken at construction.
// Every piece is one received packet, and ends either in a whole datagram or in a counter.
//
// A table of our own, and not DPDK's librte_ip_frag: how many pieces a datagram may have is compiled into that library
// (8 in the distributions' builds, where 64 KiB at MTU 1500 are 45), and it neither knows a piece that came twice from
// one that contradicts, nor lets anybody look into its table to tell. What a host does with fragments is done here:
// copies of a piece are dropped, overlaps give the datagram up (RFC 5722, RFC 8200 section 4.5).
// docs/reference/NETWORK.md describes it.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "port/buffers.hpp"
#include "wire/fragment.hpp"
#include "wire/network.hpp"
#include "wire/packet_counter.hpp"

namespace weir::port {

class IpReassembly {
public:
    static constexpr std::uint32_t pieces_max = wire::ip_pieces_max;  ///< of one datagram

    struct Config {
        std::uint32_t datagrams_max = 64;                ///< of which pieces are held
        std::uint32_t buffers_max = 256;                 ///< pieces held
        core::TimeNs timeout_ns = 20 * core::ns_per_ms;  ///< from a datagram's first piece
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

    explicit IpReassembly(const Config& config);
    ~IpReassembly();
    IpReassembly(const IpReassembly&) = delete;
    IpReassembly& operator=(const IpReassembly&) = delete;
    /// What one of this configuration takes.
    [[nodiscard]] static std::uint64_t memory_bytes(const Config& config) noexcept;

    /// Takes a packet that is a piece of a datagram: wire::parse_frame answered malformed_ip_fragment and filled
    /// `piece`. `now` never runs backwards. Returns the whole datagram, if this was what it lacked: a chain of as many
    /// buffers as it had pieces, which together are a frame that parse_frame can read. Nothing is copied, so headers
    /// may lie in several of them. What ended by this is in `ended` until the next call.
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
    struct Held {
        rte_mbuf* mbuf = nullptr;
        const std::byte* data = nullptr;
        std::uint32_t begin = 0;
        std::uint32_t end = 0;
        Held* before = nullptr;  ///< in the datagram; or the next free one
    };
    /// A datagram of which a piece came, and which is not whole.
    struct Waiting {
        Key key;
        std::uint64_t hash = 0;
        core::TimeNs first_ns = 0;
        Held* tail = nullptr;  ///< the piece that lies furthest behind; pieces do not overlap
        std::uint32_t pieces = 0;
        std::uint32_t bytes = 0;
        std::uint32_t total = 0;         ///< 0: the last piece has not come
        std::uint32_t link_bytes = 0;    ///< in front of the IP header of the first piece
        std::uint32_t header_bytes = 0;  ///< of IP
        /// All its pieces were in a datagram that became whole: it is no more than copies of them, most likely.
        bool copies = false;
        /// Given up: what still comes of it ends here, too. in_flight: it is not.
        wire::PacketCounter fate = wire::PacketCounter::in_flight;
        Waiting* next = nullptr;  ///< of the same bucket; or the next free one
        Waiting* older = nullptr;
        Waiting* newer = nullptr;
    };
    /// In order of age.
    struct List {
        Waiting* oldest = nullptr;
        Waiting* newest = nullptr;
        void append(Waiting& one) noexcept;
        void remove(Waiting& one) noexcept;
    };
    /// A piece of a datagram that became whole.
    struct Print {
        std::uint64_t print = 0;
        core::TimeNs until_ns = 0;
    };
    /// What is known of a pair of addresses.
    struct Sender {
        Key last;            ///< datagram that became whole
        bool known = false;  ///< there was one
        bool reuses = false;
    };
    static constexpr std::uint32_t prints_max = 8192;
    static constexpr std::uint32_t prints_of_set = 8;  ///< that a print may lie among
    static constexpr std::uint32_t senders_max = 256;  ///< pairs of addresses that are remembered
    /// Most that one call gives up: what was due, what made room, and what the piece itself spoils.
    static constexpr std::uint32_t ended_max = 8 * pieces_max;

    [[nodiscard]] static std::uint32_t buckets_of(const Config& config) noexcept;
    [[nodiscard]] static Key key_of(const wire::Datagram& piece, std::uint32_t identification) noexcept;
    [[nodiscard]] static std::uint64_t hash_of(const Key& key) noexcept;
    [[nodiscard]] static std::uint64_t print_of(std::uint64_t hash, std::uint32_t begin, std::uint32_t end,
                                                const std::byte* data) noexcept;
    [[nodiscard]] Waiting*& bucket_of(std::uint64_t hash) noexcept { return buckets_[hash & (buckets_.size() - 1)]; }
    [[nodiscard]] Sender& sender_of(const Key& key) noexcept;
    [[nodiscard]] List& list_of(const Waiting& one) noexcept;
    [[nodiscard]] bool is_overdue(const Waiting& one, core::TimeNs now) const noexcept;
    [[nodiscard]] std::span<Print> prints_at(std::uint64_t print) noexcept;
    [[nodiscard]] bool was_whole(std::uint64_t print, core::TimeNs now) noexcept;
    void remember_whole(std::uint64_t print, core::TimeNs now) noexcept;
    [[nodiscard]] Waiting* find(const Key& key, std::uint64_t hash, core::TimeNs now) noexcept;
    [[nodiscard]] Waiting* begin(const Key& key, std::uint64_t hash, bool copies, core::TimeNs now) noexcept;
    void make_room(core::TimeNs now) noexcept;
    [[nodiscard]] static wire::PacketCounter fit(const Waiting& into, const wire::PiecePlace& place,
                                                 const std::byte* data) noexcept;
    void hold(Waiting& into, rte_mbuf* mbuf, const wire::PiecePlace& place, const wire::Datagram& piece) noexcept;
    [[nodiscard]] rte_mbuf* join(Waiting& whole, core::TimeNs now) noexcept;
    [[nodiscard]] static bool write_header(rte_mbuf* first, const Waiting& whole) noexcept;
    void remember(const Key& key) noexcept;
    void end(rte_mbuf* mbuf, wire::PacketCounter counter) noexcept;
    void end_pieces(Waiting& one, wire::PacketCounter counter) noexcept;
    void condemn(Waiting& one, wire::PacketCounter counter) noexcept;
    void give_up(Waiting& one) noexcept;
    void forget(Waiting& one) noexcept;

    Config config_;
    std::vector<Held> pieces_;
    std::vector<Waiting> datagrams_;
    std::vector<Waiting*> buckets_;  ///< a power of two
    Held* free_pieces_ = nullptr;
    Waiting* free_datagrams_ = nullptr;
    List waiting_;
    List spare_;  ///< of which nothing is expected: they go first where room is needed
    std::vector<Print> prints_;
    std::vector<Sender> senders_;  ///< by a hash of the addresses
    std::uint32_t held_ = 0;
    std::vector<Ended> ended_;
    std::uint32_t ended_count_ = 0;
    std::atomic<std::uint64_t> fragments_{0};
    std::atomic<std::uint64_t> datagrams_whole_{0};
    std::atomic<std::uint64_t> reused_{0};
    Pair reusing_;  ///< written once, before `reused_` leaves 0
};

}  // namespace weir::port
