#include "store/event_blocks.hpp"

#include <cstring>

#include "core/error.hpp"

namespace weir::store {

BlockHeader EventBlocks::next(std::span<const std::byte> rest, std::uint16_t version) const {
    BlockHeader header;
    if (rest.size() < sizeof header) throw core::RunError("internal error: the run writer was given half a block");
    std::memcpy(&header, rest.data(), sizeof header);
    const bool starts_event = header.type == BlockType::event;
    const bool is_padding = header.type == BlockType::padding;
    const bool continues = open_ && header.epoch == event_.epoch && header.event == event_.event &&
                           (header.type == BlockType::source || header.type == BlockType::payload);
    if (header.magic != block_magic || sizeof header + padded(header.stored_bytes) > rest.size() ||
        header.stored_bytes > body_bytes_max ||
        (starts_event ? open_ || header.stored_bytes < sizeof(EventBody) : !continues && !is_padding))
        throw core::RunError("internal error: the run writer was given blocks that do not follow each other");
    if (version < format_version_reduced && (is_padding || header.encoding > Encoding::zstd))
        throw core::RunError("internal error: the run writer was given a block of a newer version than its run");
    return header;
}

std::optional<EventBlocks::Whole> EventBlocks::take(const BlockHeader& header, const std::byte* body,
                                                    std::uint32_t segment, std::uint64_t offset) {
    if (header.type == BlockType::padding && !open_) return std::nullopt;
    if (header.type == BlockType::event) {
        EventBody event;
        std::memcpy(&event, body, sizeof event);
        payload_bytes_ = event.payload_bytes;
        event_ = {header.event, header.epoch, segment, 0, 0};
        event_.offset = offset;
        open_ = true;
    }
    event_.bytes += sizeof header + padded(header.stored_bytes);
    if ((header.flags & BlockHeader::end_of_event) == 0) return std::nullopt;
    open_ = false;
    return Whole{event_, payload_bytes_};
}

}  // namespace weir::store
