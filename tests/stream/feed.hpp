// Events as a worker hands them to a sink, made from pixels: for the tests of what is sent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reduce/pack/codec.hpp"
#include "store/block_writer.hpp"
#include "store/event_sink.hpp"

namespace weir::stream::test {

struct FedEvent {
    std::uint64_t id = 0;
    store::Content content = store::Content::pixels;
    std::vector<std::vector<std::byte>> sources;            ///< each one's whole message, or its pixels
    std::vector<std::vector<assemble::ByteRange>> missing;  ///< of what was received; may be shorter
    std::optional<reduce::pack::Codec> codec;               ///< pieces are packed
    std::optional<std::size_t> plain_piece;                 ///< but for this one
};

/// Hands the event to the sink, in pieces of `piece_bytes`, in one buffer or several.
void feed(store::EventSink& sink, const FedEvent& event, std::size_t piece_bytes = 65536,
          std::size_t buffer_bytes = std::size_t{1} << 20);

/// Noise as a detector has it.
std::vector<std::uint16_t> noise(std::size_t pixels, unsigned seed);
std::vector<std::byte> as_bytes(const std::vector<std::uint16_t>& pixels);

/// What a run of calibrated pixels, or of frames as received, says of itself at the start.
std::string pixels_json(std::uint32_t columns);
std::string jungfrau_json();

}  // namespace weir::stream::test
