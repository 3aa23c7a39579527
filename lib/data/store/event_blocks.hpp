// Follows the blocks that are written to a run, and says where events begin and end among them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "store/format.hpp"

namespace weir::store {

class EventBlocks {
public:
    /// An event that is whole.
    struct Whole {
        IndexEntry entry;
        std::uint64_t payload_bytes = 0;
    };

    /// An event has begun and is not whole.
    [[nodiscard]] bool is_open() const noexcept { return open_; }

    /// The header of the block at the start of `rest`, for a run of `version`. Throws core::RunError if it may not come
    /// now.
    [[nodiscard]] BlockHeader next(std::span<const std::byte> rest, std::uint16_t version) const;
    /// Takes note of that block, which goes to `offset` in `segment`. An event that it ends, if it does.
    [[nodiscard]] std::optional<Whole> take(const BlockHeader& header, const std::byte* body, std::uint32_t segment,
                                            std::uint64_t offset);
    /// Something was put in between blocks.
    void pad(std::uint64_t bytes) noexcept {
        if (open_) event_.bytes += bytes;
    }
    /// The rest of the event will not come.
    void drop() noexcept { open_ = false; }

private:
    IndexEntry event_;
    std::uint64_t payload_bytes_ = 0;
    bool open_ = false;
};

}  // namespace weir::store
