// The payload of an image event as the bytes of a message: pieces that were packed on the way stay packed, everything
// else is laid out as rows of pixels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "reduce/pack/codec.hpp"
#include "reduce/pack/unpacker.hpp"
#include "store/event_scanner.hpp"
#include "store/hdf5/layout.hpp"
#include "store/image_stretches.hpp"
#include "store/payload_decoder.hpp"
#include "store/payload_placer.hpp"

namespace weir::stream {

/// Whether the event is an image of this layout: the same sources, each of the same size.
[[nodiscard]] bool is_image_of(const store::hdf5::Layout& layout, const store::EventInfo& event);

/// All pieces of an image that were packed with one codec, one after the other behind one header, are the whole image
/// packed with it: blocks of a piece do not reach over its end. So their blocks are taken as they are. As soon as a
/// piece does not go with the others (a worker stores one as it is if it does not get shorter; something is missing
/// from the event), the image becomes plain pixels.
class ImageBuilder {
public:
    /// Room that is needed for an image.
    [[nodiscard]] static std::size_t bytes_max(const store::hdf5::Layout& layout) noexcept;

    /// `event` is_image_of(layout); both stay until end(). `to` has bytes_max(). Pixels that did not come are filled
    /// with the layout's filler.
    void begin(const store::hdf5::Layout& layout, const store::EventInfo& event, std::span<std::byte> to);
    /// The next payload block. Throws core::RunError if it cannot be decoded, or is more than the event has.
    void take(const store::BlockHeader& header, std::span<const std::byte> body);

    struct Result {
        std::span<const std::byte> bytes;
        std::optional<reduce::pack::Codec> codec;  ///< nothing: plain pixels
    };
    [[nodiscard]] Result end();
    /// The plain pixels of what end() gave; valid until the next begin().
    [[nodiscard]] std::span<const std::byte> pixels(const Result& result);

private:
    [[nodiscard]] bool take_packed(const store::BlockHeader& header, std::span<const std::byte> body);
    void unpack();
    void lay_out(std::span<const std::byte> decoded);
    void fill();
    void spread();

    const store::hdf5::Layout* layout_ = nullptr;
    const store::EventInfo* event_ = nullptr;
    std::span<std::byte> to_;
    std::optional<store::PayloadPlacer> placer_;
    std::optional<reduce::pack::Codec> codec_;  ///< of what is in `to_`
    std::uint32_t block_bytes_ = 0;             ///< of its blocks
    std::size_t used_ = 0;
    std::uint64_t decoded_bytes_ = 0;  ///< that the packed pieces stand for
    bool packable_ = false;            ///< what has come so far is packed, or nothing has come
    store::PayloadDecoder decoder_;
    reduce::pack::Unpacker unpacker_;
    std::vector<std::byte> plain_;
    std::vector<std::byte> parts_;  ///< where pixels share bytes: the messages one after the other
    store::ImageStretches came_;    ///< of parts_
};

}  // namespace weir::stream
