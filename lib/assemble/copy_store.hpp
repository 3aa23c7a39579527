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
};

class CopyStore {
public:
    /// `cells` cells of `cell_bytes`, a multiple of 64 and more than 64. `touch`: their pages are touched at once,
    /// rather than when first used.
    CopyStore(std::uint32_t cells, std::uint32_t cell_bytes, bool touch = false)
        : cell_bytes_(cell_bytes), free_cells_(cells) {
        if (cells == 0) return;
        memory_.reset(
            static_cast<std::byte*>(std::aligned_alloc(core::cache_line_bytes, std::size_t{cells} * cell_bytes)));
        if (memory_ == nullptr) core::refuse_memory(std::size_t{cells} * cell_bytes);
        fresh_ = memory_.get();
        if (touch) core::touch(fresh_, std::size_t{cells} * cell_bytes);
    }

    /// The largest payload that fits.
    [[nodiscard]] std::uint32_t capacity_bytes() const noexcept { return cell_bytes_ - sizeof(CopyCell); }

    /// Copies `data` into the cells of a message, whose list is `cells`; nullptr if it does not fit.
    [[nodiscard]] const std::byte* put(CopyCell*& cells, const std::byte* data, std::uint32_t bytes) noexcept {
        if (bytes > capacity_bytes()) return nullptr;
        if (cells == nullptr || cells->used_bytes + bytes > capacity_bytes()) {
            if (free_cells_ == 0) return nullptr;
            CopyCell* cell = take();
            cell->next = cells;
            cell->used_bytes = 0;
            cells = cell;
        }
        std::byte* at = reinterpret_cast<std::byte*>(cells) + sizeof(CopyCell) + cells->used_bytes;
        std::memcpy(at, data, bytes);
        // The next payload starts aligned, for the copy that reads it.
        cells->used_bytes = std::min((cells->used_bytes + bytes + 15) & ~15U, capacity_bytes());
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
    std::uint32_t free_cells_;
    std::unique_ptr<std::byte, Freer> memory_;
    std::byte* fresh_ = nullptr;  ///< cells from here on have never been used
    FreeList<CopyCell> free_;
};

}  // namespace weir::assemble
