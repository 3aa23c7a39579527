// What is known of the packet sequence numbers (PSN) of one queue pair: one cell for each of the last `size` of them,
// so that finding a packet's neighbours, or that it has been before, is one look and no search. PSNs are extended to 64
// bits.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "core/zeroed_array.hpp"
#include "roce/psn.hpp"
#include "wire/packet_counter.hpp"

namespace weir::roce {

/// The state of one PSN.
class PsnCell {
public:
    constexpr PsnCell() = default;
    /// Received, in a run that is still collecting. Only the cells at the two ends of a run keep its index true.
    static constexpr PsnCell of_run(std::uint32_t run) { return PsnCell(run + 1); }
    /// Of a message that has ended: what still comes for it is counted as `fate`. `starts` and `ends`: this packet is
    /// known to have been the first or the last of its message.
    static constexpr PsnCell closed(wire::PacketCounter fate, bool starts, bool ends) {
        return PsnCell(closed_bit | (starts ? starts_bit : 0) | (ends ? ends_bit : 0) |
                       static_cast<std::uint32_t>(fate));
    }
    /// Used by a request that carries no data for us. A hint only: a data packet may still take the cell.
    static constexpr PsnCell skipped() { return PsnCell(closed_bit | starts_bit | ends_bit | skipped_bit); }

    [[nodiscard]] constexpr bool unknown() const { return bits_ == 0; }
    [[nodiscard]] constexpr bool vacant() const { return bits_ == 0 || (bits_ & skipped_bit) != 0; }
    [[nodiscard]] constexpr bool is_skipped() const { return (bits_ & skipped_bit) != 0; }
    [[nodiscard]] constexpr bool is_closed() const { return (bits_ & closed_bit) != 0; }
    [[nodiscard]] constexpr bool in_run() const { return bits_ != 0 && (bits_ & closed_bit) == 0; }
    [[nodiscard]] constexpr bool starts() const { return (bits_ & starts_bit) != 0; }
    [[nodiscard]] constexpr bool ends() const { return (bits_ & ends_bit) != 0; }
    [[nodiscard]] constexpr std::uint32_t run() const { return bits_ - 1; }
    [[nodiscard]] constexpr wire::PacketCounter fate() const { return static_cast<wire::PacketCounter>(bits_ & 0xff); }

private:
    static constexpr std::uint32_t closed_bit = 1U << 31;
    static constexpr std::uint32_t starts_bit = 1U << 30;
    static constexpr std::uint32_t ends_bit = 1U << 29;
    static constexpr std::uint32_t skipped_bit = 1U << 28;
    explicit constexpr PsnCell(std::uint32_t bits) : bits_(bits) {}
    std::uint32_t bits_ = 0;
};

static_assert(std::is_trivially_copyable_v<PsnCell>);

class PsnRing {
public:
    /// `size` is rounded up to a power of two.
    /// Its memory is zero, and without `touch` not touched before it is used.
    explicit PsnRing(std::uint32_t size, bool touch = false)
        : cells_(std::bit_ceil(std::max<std::uint32_t>(size, 16)), touch) {}

    [[nodiscard]] Psn newest() const noexcept { return newest_; }
    /// The lowest PSN that still has a cell.
    [[nodiscard]] Psn oldest() const noexcept { return newest_ - size() + 1; }
    [[nodiscard]] Psn size() const noexcept { return static_cast<Psn>(cells_.size()); }

    /// The PSN nearest to the newest one with these 24 bits.
    [[nodiscard]] Psn extend(std::uint32_t psn) const noexcept {
        const std::uint32_t ahead = (psn - static_cast<std::uint32_t>(newest_)) & 0xffffff;
        return newest_ + (static_cast<std::int32_t>(ahead << 8U) >> 8U);
    }
    /// Unknown for everything outside the ring.
    [[nodiscard]] PsnCell at(Psn psn) const noexcept {
        return psn > newest_ || psn < oldest() ? PsnCell() : cells_[index(psn)];
    }
    /// Of a PSN that is probably in the ring.
    [[nodiscard]] const PsnCell& probable(Psn psn) const noexcept { return cells_[index(psn)]; }
    void set(Psn psn, PsnCell cell) noexcept {
        if (psn > newest_ || psn < oldest()) return;
        lowest_ = std::min(lowest_, psn);
        cells_[index(psn)] = cell;
    }
    void fill(Psn begin, Psn end, PsnCell cell) noexcept {
        end = std::min(end, newest_ + 1);
        for (Psn psn = std::max(begin, oldest()); psn < end; ++psn) set(psn, cell);
    }
    /// The cell that the next step of `advance` gives to a new PSN: that of `oldest()`.
    [[nodiscard]] PsnCell leaving() const noexcept { return cells_[index(newest_ + 1)]; }
    void advance() noexcept { cells_[index(++newest_)] = PsnCell(); }
    /// So many steps, and all that is new is this. Nothing of what leaves matters to anybody.
    void advance(std::uint32_t steps, PsnCell cell) noexcept {
        for (; steps > 0; --steps) cells_[index(++newest_)] = cell;
    }
    /// Forgets everything; the ring then ends at `newest`.
    void restart(Psn newest) noexcept {
        for (Psn psn = std::max(lowest_, oldest()); psn <= newest_; ++psn) cells_[index(psn)] = PsnCell();
        newest_ = newest;
        lowest_ = newest + 1;
    }

private:
    [[nodiscard]] std::size_t index(Psn psn) const noexcept {
        return static_cast<std::size_t>(psn) & (cells_.size() - 1);
    }
    core::ZeroedArray<PsnCell> cells_;
    Psn newest_ = 0;
    Psn lowest_ = 1;  ///< nothing below has been set since the restart
};

}  // namespace weir::roce
