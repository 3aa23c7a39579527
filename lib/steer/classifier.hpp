// Flow rules in software, with the meaning that rte_flow gives them: one classification per packet, whatever the number
// of rules. Built once.
//
// Each header field that any rule looks at is an axis. On an axis every value belongs to a class of values that the
// same rules accept; a class has a bit per rule, in order of precedence. A packet's rules are the AND of its classes'
// bits, and the lowest bit wins (the bit vector scheme of Lakshman and Stiliadis, SIGCOMM 1998).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "steer/flow_rule.hpp"
#include "steer/packet_fields.hpp"

namespace weir::flow {

/// What becomes of a packet.
struct Verdict {
    std::optional<std::uint32_t> rule{};   ///< index into the rules; nothing: none matches
    std::optional<std::uint16_t> queue{};  ///< nothing: as without rules
    std::optional<std::uint32_t> mark{};
    bool dropped = false;
};

class Classifier {
public:
    /// Of several matching rules the lowest priority number wins, then the one that comes first.
    explicit Classifier(std::vector<FlowRule> rules);
    Classifier(const Classifier&) = delete;
    Classifier& operator=(const Classifier&) = delete;

    /// The winning rule, as an index into rules(), or none.
    static constexpr std::uint32_t none = 0xffffffff;
    [[nodiscard]] std::uint32_t match(const PacketFields& packet) const noexcept;
    /// The frame's bytes, as far as they can be read.
    struct Frame {
        const std::byte* data;
        std::uint32_t bytes;
    };
    /// The same for up to burst_max frames at once; `winners` has room for as many. The way of the packet path.
    static constexpr std::size_t burst_max = 64;
    void match_burst(std::span<const Frame> frames, std::uint32_t* winners) const noexcept;
    /// The winning rule and what its actions come to.
    [[nodiscard]] Verdict classify(const PacketFields& packet) const noexcept;

    [[nodiscard]] const std::vector<FlowRule>& rules() const noexcept { return rules_; }

private:
    using Bits = std::vector<std::uint64_t>;  ///< a bit per rule, in order of precedence

    /// A field of up to 16 bits: its class by a table.
    struct NarrowAxis {
        Field field{};
        std::vector<std::uint16_t> class_of;
        std::vector<std::uint64_t> bits;  ///< class after class
    };
    /// A wide field under one mask: its class by the interval that the masked value lies in.
    struct WideAxis {
        Field field{};
        Wide mask{};
        std::vector<Wide> starts;
        std::vector<std::uint64_t> bits;  ///< interval after interval
    };

    /// What a burst needs of an axis when the frame is untagged IPv4 without options: its headers lie where they
    /// always do. Conditions on other headers cannot hold there, so their axes are left out.
    struct PlainNarrow {
        std::uint32_t offset = 0;
        bool two_bytes = false;
        const std::uint16_t* class_of = nullptr;
        const std::uint64_t* bits = nullptr;
    };
    struct PlainWide {
        std::uint32_t offset = 0;
        bool address = false;  ///< up to 32 bits, else the 48 of a MAC address
        std::uint64_t mask = 0;
        std::vector<std::uint64_t> starts;
        const std::uint64_t* bits = nullptr;
    };
    using Rows = std::array<std::uint32_t, burst_max>;

    void make_plain();
    void start_plain(std::span<const Frame> frames, const std::byte** data, Rows& shape) const noexcept;
    static void narrow_rows(const PlainNarrow& axis, std::size_t count, const std::byte* const* data,
                            Rows& rows) noexcept;
    static void wide_rows(const PlainWide& axis, std::size_t count, const std::byte* const* data, Rows& rows) noexcept;
    void add_axis(Field field);
    void add_narrow(Field field);
    void add_wide(Field field, const Wide& mask);
    [[nodiscard]] bool accepts(const FlowRule& rule, Field field, const Wide& value) const noexcept;

    std::vector<FlowRule> rules_;
    std::vector<std::uint32_t> order_;  ///< by precedence: index into rules_
    std::size_t words_ = 0;
    std::vector<std::uint64_t> shapes_;  ///< bits of each Shape::index()
    std::vector<NarrowAxis> narrow_;
    std::vector<WideAxis> wide_;
    std::vector<PlainNarrow> plain_narrow_;
    std::vector<PlainWide> plain_wide_;
    std::uint32_t plain_bytes_ = 0;            ///< that a frame has at least, to be read so
    std::vector<std::uint64_t> plain_shapes_;  ///< of a plain frame without and with UDP
};

/// Queue of a packet by an rss action: a Toeplitz hash over addresses and, where the types ask for them, ports, with
/// the key of Microsoft's test vectors. A NIC with another key or indirection table spreads otherwise.
[[nodiscard]] std::uint16_t rss_queue(const RssAction& action, const PacketFields& packet) noexcept;

}  // namespace weir::flow
