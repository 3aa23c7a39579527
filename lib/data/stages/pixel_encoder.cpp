#include "stages/pixel_encoder.hpp"

#include <algorithm>

namespace weir::stages {

std::size_t pixel_event_bytes_max(const reduce::PixelChain& chain, std::size_t sources) noexcept {
    using store::BlockWriter;
    constexpr std::size_t header = sizeof(store::BlockHeader);
    std::size_t bytes = header + sizeof(store::EventBody);
    for (std::uint32_t source = 0; source < sources; ++source) {
        bytes += header + store::padded(sizeof(store::SourceBody) +
                                        BlockWriter::missing_count_max * sizeof(store::MissingRange));
        for (std::size_t left = chain.source(source).pixels(); left > 0;) {
            const std::size_t pixels = std::min(left, chain.piece_pixels());
            bytes += header + store::padded(chain.bound(pixels)) + header;  // and what is not used for an end
            left -= pixels;
        }
    }
    return bytes;
}

PixelEncoder::PixelEncoder(const reduce::PixelChain::Config& config, std::unique_ptr<reduce::PieceCodec> codec)
    : chain_(config, std::move(codec)) {
    if (chain_.concludes()) whole_event_bytes_ = pixel_event_bytes_max(chain_, config.sources.size());
}

bool PixelEncoder::begin(const assemble::Event& event) noexcept {
    if (!chain_.accepts(event)) return false;
    event_ = &event;
    source_ = 0;
    chain_.begin_event(event);
    load_source();
    return true;
}

void PixelEncoder::load_source() noexcept {
    while (source_ < event_->messages.size() && !lists_source(*event_, source_)) ++source_;
    if (source_ == event_->messages.size()) return;
    const auto id = static_cast<std::uint32_t>(source_);
    chain_.begin_source(id, event_->messages[source_]);
    left_ = chain_.source(id).pixels();
}

EventEncoder::Step PixelEncoder::step(store::BlockWriter& writer, std::uint64_t& read_bytes) noexcept {
    read_bytes = 0;
    const std::size_t pixels = std::min(left_, chain_.piece_pixels());
    if (writer.payload_room() < chain_.bound(pixels)) return Step::full;
    const reduce::StoredPiece stored = chain_.next_piece(pixels, writer.open_payload());
    read_bytes = pixels * sizeof(std::uint16_t);
    left_ -= pixels;
    if (left_ == 0) {
        ++source_;
        load_source();
    }
    const bool last = source_ == event_->messages.size();
    writer.close_payload(stored.bytes, static_cast<std::uint32_t>(chain_.decoded_bytes(pixels)),
                         static_cast<store::Encoding>(stored.encoding), last, stored.element_bytes);
    if (!last) return Step::more;
    const reduce::PixelResult result = chain_.end_event();
    if (!result.keep) return Step::vetoed;
    if (whole_event_bytes_ > 0)
        static_cast<void>(
            writer.patch_event({static_cast<store::Veto>(result.veto), result.pixels_above, result.peaks}));
    return Step::done;
}

}  // namespace weir::stages
