// What a trial sends: events of a message from each source, messages of equal packets, each packet an EJFAT segment
// that carries a stamp and a known pattern. EJFAT, because its header says which message a packet is of and where in
// it, so that weir's own assembly can do the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bench/content.hpp"
#include "core/units.hpp"

namespace weir::bench {

struct PacketPlan {
    static constexpr std::uint32_t header_bytes = 20;  ///< EJFAT's reassembly header
    static constexpr std::uint32_t stamp_bytes = 32;
    static constexpr std::uint32_t head_bytes = header_bytes + stamp_bytes;
    static constexpr std::uint32_t bytes_min = head_bytes + 8;
    static constexpr std::uint32_t bytes_max = 65507;  ///< of a UDP payload over IPv4

    std::uint32_t trial = 0;    ///< packets of other trials are told by it
    std::uint32_t bytes = 0;    ///< of UDP payload in each packet
    std::uint32_t packets = 1;  ///< in a message
    std::uint32_t sources = 1;  ///< that take turns to send a message: one of each makes an event

    /// That packets carry the bytes of, one piece after the other, and again from its start; null: all carry a pattern.
    Content content = nullptr;

    [[nodiscard]] std::uint32_t body_bytes() const noexcept { return bytes - head_bytes; }
    [[nodiscard]] std::uint64_t event_packets() const noexcept { return std::uint64_t{packets} * sources; }
    [[nodiscard]] std::uint32_t payload_bytes() const noexcept { return bytes - header_bytes; }
    [[nodiscard]] std::uint64_t message_bytes() const noexcept { return std::uint64_t{packets} * payload_bytes(); }
    friend bool operator==(const PacketPlan&, const PacketPlan&) = default;
};

/// Throws core::UsageError that says what a plan can have.
void check(const PacketPlan& plan);

/// Makes the packets of a plan: heads, and what comes after them.
class PacketMaker {
public:
    static constexpr std::uint32_t head_bytes = PacketPlan::head_bytes;

    explicit PacketMaker(const PacketPlan& plan);
    /// `out` has head_bytes. Packets are numbered from 0; `now` is core::monotonic_ns().
    void write_head(std::uint64_t sequence, core::TimeNs now, std::byte* out) const noexcept;
    [[nodiscard]] std::span<const std::byte> body(std::uint64_t sequence) const noexcept;
    /// All that bodies are pieces of.
    [[nodiscard]] std::span<const std::byte> bodies() const noexcept {
        return plan_.content ? std::span<const std::byte>(*plan_.content) : pattern_;
    }
    [[nodiscard]] const PacketPlan& plan() const noexcept { return plan_; }

private:
    PacketPlan plan_;
    std::vector<std::byte> pattern_;
};

/// Looks at received packets.
class PacketChecker {
public:
    enum class Is : std::uint8_t { whole, damaged, other };
    struct Packet {
        Is is = Is::other;
        std::uint64_t sequence = 0;  ///< if whole
        core::TimeNs sent_ns = 0;    ///< if whole
    };
    explicit PacketChecker(const PacketPlan& plan);
    /// Stamp and length of every packet, four words of its pattern, and all of it in every 64th.
    [[nodiscard]] Packet check(std::span<const std::byte> payload) const noexcept;

private:
    [[nodiscard]] bool same_body(const std::byte* body, std::uint64_t sequence) const noexcept;

    PacketMaker maker_;
};

}  // namespace weir::bench
