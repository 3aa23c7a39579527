// The classifier's fast way: a burst of frames, axis by axis, so that the look-ups of different packets do not wait for
// each other and no branch depends on what is in a packet. Untagged IPv4 without options goes this way.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "steer/rule_axes.hpp"

namespace weir::steer {

/// The frame's bytes, as far as they can be read.
struct FrameBytes {
    const std::byte* data;
    std::uint32_t bytes;
};

class PlainFrames {
public:
    /// `axes` must stay as they are.
    explicit PlainFrames(const RuleAxes& axes);

    static constexpr std::size_t burst_max = 64;
    static constexpr std::uint32_t no_rule = 0xffffffff;
    static constexpr std::uint32_t undecided = 0xfffffffe;
    /// Of each frame the winning rule, or no_rule; undecided if the frame does not go this way. True: all do.
    bool match(std::span<const FrameBytes> frames, std::uint32_t* winners) const noexcept;

private:
    /// What a burst needs of an axis when the frame is untagged IPv4 without options: its headers lie where they
    /// always do. Conditions on other headers cannot hold there, so their axes are left out.
    struct Narrow {
        std::uint32_t offset = 0;
        bool two_bytes = false;
        const std::uint16_t* class_of = nullptr;
        const std::uint64_t* bits = nullptr;
    };
    struct Intervals {
        std::uint32_t offset = 0;
        bool address = false;  ///< up to 32 bits, else the 48 of a MAC address
        std::uint64_t mask = 0;
        std::vector<std::uint64_t> starts;
        const std::uint64_t* bits = nullptr;
    };
    using Rows = std::array<std::uint32_t, burst_max>;

    [[nodiscard]] bool start(std::span<const FrameBytes> frames, const std::byte** data, Rows& shape) const noexcept;
    static void narrow_rows(const Narrow& axis, std::size_t count, const std::byte* const* data, Rows& rows) noexcept;
    static void wide_rows(const Intervals& axis, std::size_t count, const std::byte* const* data, Rows& rows) noexcept;

    std::span<const std::uint32_t> order_;  ///< by precedence
    std::size_t words_;
    std::uint32_t bytes_;  ///< that a frame has at least, to be read so
    std::vector<Narrow> narrow_;
    std::vector<Intervals> wide_;
    std::vector<std::uint64_t> shapes_;  ///< of a plain frame without and with UDP
};

}  // namespace weir::steer
