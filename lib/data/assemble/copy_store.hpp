// Where payload goes that is copied out of its received buffer: cells of fixed size, chained per message. It lets small
// packets share memory that each of them would otherwise keep a whole jumbo-sized buffer of. One lcore uses it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "assemble/free_list.hpp"
#include "core/refused_memory.hpp"
#include "core/resident_memory.hpp"
#include "core/units.hpp"

namespace weir::assemble {

/// The head of a cell; the payload follows.
struct alignas(core::cache_line_bytes) CopyCell {
    CopyCell* next = nullptr;
    std::uint32_t used_bytes = 0;

    /// What a payload takes: the next one starts aligned, for the copy that reads it.
    [[nodiscard]] static constexpr std::uint32_t aligned(std::uint32_t payload_bytes) noexcept {
        return (payload_bytes + 15) & ~15U;
    }
};

/// Which payload is copied, so that its buffer can be given back at once, and the cells for it. Without a free cell it
/// stays where it is.
struct CopyConfig {
    /// Payload of up to so many bytes is cheaper to copy as it comes than to refer to and to fetch once more, and
    /// shares memory: docs/internals/benchmarks/PIPELINE.md, decision `assembly = "auto"`.
    static constexpr std::uint32_t small_bytes = 128;

    std::uint32_t at_once_bytes = 0;  ///< payload of up to this size always
    std::uint32_t bytes_max = 0;      ///< payload of up to this size while at least `above_held` buffers are held
    std::uint32_t above_held = 0;
    std::uint32_t cells = 0;
    std::uint32_t cell_bytes = 4096;  ///< a multiple of 64, and more than 64

    /// No larger payload is ever copied.
    [[nodiscard]] std::uint32_t payload_bytes_max() const noexcept { return std::max(at_once_bytes, bytes_max); }
    /// The largest payload that fits into a cell.
    [[nodiscard]] std::uint32_t capacity_bytes() const noexcept { return cell_bytes - sizeof(CopyCell); }
    /// Payloads of this size, not 0, that fit into a cell.
    [[nodiscard]] std::uint32_t in_cell(std::uint32_t payload_bytes) const noexcept {
        return payload_bytes > capacity_bytes()
                   ? 0
                   : (capacity_bytes() - payload_bytes) / CopyCell::aligned(payload_bytes) + 1;
    }
};

class CopyStore {
public:
    /// `touch`: its pages are touched at once, rather than when first used.
    explicit CopyStore(const CopyConfig& config, bool touch = false)
        : cell_bytes_(config.cell_bytes), capacity_bytes_(config.capacity_bytes()), free_cells_(config.cells) {
        if (config.cells == 0) return;
        const std::size_t bytes = std::size_t{config.cells} * config.cell_bytes;
        memory_.reset(static_cast<std::byte*>(std::aligned_alloc(core::cache_line_bytes, bytes)));
        if (memory_ == nullptr) core::refuse_memory(bytes);
        fresh_ = memory_.get();
        if (touch) core::touch(fresh_, bytes);
    }

    /// Copies `data` into the cells of a message, whose list is `cells`; nullptr if it does not fit.
    [[nodiscard]] const std::byte* put(CopyCell*& cells, const std::byte* data, std::uint32_t bytes) noexcept {
        if (bytes > capacity_bytes_) return nullptr;
        if (cells == nullptr || cells->used_bytes + bytes > capacity_bytes_) {
            if (free_cells_ == 0) return nullptr;
            CopyCell* cell = take();
            cell->next = cells;
            cell->used_bytes = 0;
            cells = cell;
        }
        std::byte* at = reinterpret_cast<std::byte*>(cells) + sizeof(CopyCell) + cells->used_bytes;
        std::memcpy(at, data, bytes);
        cells->used_bytes = std::min(CopyCell::aligned(cells->used_bytes + bytes), capacity_bytes_);
        return at;
    }
    void give_back(CopyCell* cells) noexcept {
        while (cells != nullptr) {
            CopyCell* next = cells->next;
            free_.push(*cells);
            ++free_cells_;
            cells = next;
        }
    }
    /// Puts the cells of `from` after those of `into`.
    static void join(CopyCell*& into, CopyCell* from) noexcept {
        CopyCell** end = &into;
        while (*end != nullptr) end = &(*end)->next;
        *end = from;
    }

    [[nodiscard]] std::uint32_t free_cells() const noexcept { return free_cells_; }

private:
    struct Freer {
        void operator()(std::byte* memory) const noexcept { std::free(memory); }
    };
    [[nodiscard]] CopyCell* take() noexcept {
        --free_cells_;
        if (CopyCell* cell = free_.pop(); cell != nullptr) return cell;
        auto* cell = new (fresh_) CopyCell;
        fresh_ += cell_bytes_;
        return cell;
    }

    std::uint32_t cell_bytes_;
    std::uint32_t capacity_bytes_;
    std::uint32_t free_cells_;
    std::unique_ptr<std::byte, Freer> memory_;
    std::byte* fresh_ = nullptr;  ///< cells from here on have never been used
    FreeList<CopyCell> free_;
};

}  // namespace weir::assemble
