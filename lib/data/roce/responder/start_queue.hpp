// Packets of a reliable connection of which nobody said at which PSN it begins. The first packet alone is no evidence:
// anybody can have sent it, and after a wrong PSN everything of the real peer would be refused. So it is held until a
// second packet of the same address bears it out, by the PSN that follows or, from a sender that got no answer and
// repeats itself, by the same one. Then both count, in the order of their PSNs: nothing of a real sender is lost by it.
//
// A few are held at a time, so that a stranger's packets between the two of the peer do no harm.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "roce/psn.hpp"
#include "wire/roce.hpp"

namespace weir::roce {

/// `Held` has a member `roce`, the decoded packet.
template <class Held>
class StartQueue {
public:
    static constexpr std::uint32_t packets_max = 4;

    [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
    /// That has been held for longest; not if it is empty.
    [[nodiscard]] const Held& oldest() const noexcept { return held_[0]; }

    /// The PSN at which the connection begins, if `second` bears out one that is held.
    [[nodiscard]] std::optional<std::uint32_t> start_by(const wire::RocePacket& second) const noexcept {
        const auto* const end = held_.data() + count_;
        const auto* const first = std::find_if(held_.data(), end, [&](const Held& held) {
            const std::int32_t distance = psn_distance(second.psn, held.roce.psn);
            return held.roce.address == second.address && (distance == 0 || distance == 1);
        });
        if (first == end) return std::nullopt;
        return earliest(first->roce);
    }
    /// The PSN at which it begins if nothing more comes: where all that are held are of one sender.
    [[nodiscard]] std::optional<std::uint32_t> only_start() const noexcept {
        const auto is_alike = [this](const Held& held) { return held.roce.address == held_[0].roce.address; };
        if (count_ == 0 || !std::all_of(held_.data(), held_.data() + count_, is_alike)) return std::nullopt;
        const auto* const first =
            std::min_element(held_.data(), held_.data() + count_,
                             [](const Held& a, const Held& b) { return psn_distance(a.roce.psn, b.roce.psn) < 0; });
        return first->roce.psn;
    }

    /// Returns that which has been held for longest, if one has to go.
    [[nodiscard]] std::optional<Held> hold(Held packet) noexcept {
        std::optional<Held> gone;
        if (count_ == packets_max) gone = take(0);
        held_[count_++] = std::move(packet);
        return gone;
    }
    /// The next of all that are held, counted from `start` on; none if it is not before `end`.
    [[nodiscard]] std::optional<Held> take_next(std::uint32_t start, std::optional<std::uint32_t> end = {}) noexcept {
        if (count_ == 0) return std::nullopt;
        const auto from_start = [start](const Held& held) { return (held.roce.psn - start) & psn_mask; };
        const auto* const next =
            std::min_element(held_.data(), held_.data() + count_,
                             [&](const Held& a, const Held& b) { return from_start(a) < from_start(b); });
        if (end && from_start(*next) >= ((*end - start) & psn_mask)) return std::nullopt;
        return take(static_cast<std::uint32_t>(next - held_.data()));
    }

private:
    /// Before `first` others of its sender may have come after it.
    [[nodiscard]] std::uint32_t earliest(const wire::RocePacket& first) const noexcept {
        std::uint32_t psn = first.psn;
        for (std::uint32_t round = 0; round < count_; ++round)
            for (std::uint32_t i = 0; i < count_; ++i)
                if (held_[i].roce.address == first.address && psn_distance(psn, held_[i].roce.psn) == 1)
                    psn = held_[i].roce.psn;
        return psn;
    }
    Held take(std::uint32_t at) noexcept {
        Held held = std::move(held_[at]);
        std::move(held_.data() + at + 1, held_.data() + count_, held_.data() + at);
        --count_;
        return held;
    }

    std::array<Held, packets_max> held_{};
    std::uint32_t count_ = 0;
};

}  // namespace weir::roce
