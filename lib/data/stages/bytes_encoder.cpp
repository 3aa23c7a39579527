#include "stages/bytes_encoder.hpp"

namespace weir::stages {

using assemble::Message;

BytesEncoder::BytesEncoder(const Config& config, std::unique_ptr<reduce::PieceCodec> codec)
    : config_(config), store_(std::move(codec)), refs_(config.refs_max) {
    if (store_.packs()) piece_.resize(reduce::piece_bytes);
}

bool BytesEncoder::begin(const assemble::Event& event) noexcept {
    event_ = &event;
    source_ = 0;
    piece_filled_ = 0;
    left_ = 0;
    for (const Message* message : event.messages)
        if (message != nullptr && config_.reads_payload) left_ += message->received_bytes;
    load_source();
    return true;
}

void BytesEncoder::load_source() noexcept {
    while (source_ < event_->messages.size() && event_->messages[source_] == nullptr) ++source_;
    cursor_ = {};
    if (source_ < event_->messages.size()) refs_.assign(*event_->messages[source_]);
}

/// The next payload bytes of the event, over the borders of its sources.
std::size_t BytesEncoder::fill(std::span<std::byte> out) noexcept {
    std::size_t done = 0;
    while (source_ < event_->messages.size() && done < out.size()) {
        const std::size_t bytes = reduce::gather(refs_, cursor_, out.subspan(done));
        done += bytes;
        if (cursor_.ref == refs_.refs().size()) {
            ++source_;
            load_source();
        }
    }
    left_ -= done;
    return done;
}

EventEncoder::Step BytesEncoder::step_raw(store::BlockWriter& writer, std::uint64_t& read_bytes) noexcept {
    const std::span<std::byte> room = writer.open_payload();
    if (room.empty()) return Step::full;
    const std::size_t bytes = fill(room);
    read_bytes = bytes;
    const auto stored = static_cast<std::uint32_t>(bytes);
    writer.close_payload(stored, stored, store::Encoding::raw, left_ == 0);
    return left_ == 0 ? Step::done : Step::more;
}

EventEncoder::Step BytesEncoder::step_packed(store::BlockWriter& writer, std::uint64_t& read_bytes) noexcept {
    if (piece_filled_ == 0) read_bytes = piece_filled_ = fill(piece_);
    if (writer.payload_room() < store_.bound(piece_filled_)) return Step::full;
    const reduce::StoredPiece stored = store_.put(std::span(piece_).first(piece_filled_), writer.open_payload());
    writer.close_payload(stored.bytes, static_cast<std::uint32_t>(piece_filled_),
                         static_cast<store::Encoding>(stored.encoding), left_ == 0, stored.element_bytes);
    piece_filled_ = 0;
    return left_ == 0 ? Step::done : Step::more;
}

EventEncoder::Step BytesEncoder::step(store::BlockWriter& writer, std::uint64_t& read_bytes) noexcept {
    read_bytes = 0;
    if (left_ == 0 && piece_filled_ == 0) {
        // An event without payload has one empty block, which ends it.
        if (writer.open_payload().empty()) return Step::full;
        writer.close_payload(0, 0, store::Encoding::raw, true);
        return Step::done;
    }
    return store_.packs() ? step_packed(writer, read_bytes) : step_raw(writer, read_bytes);
}

}  // namespace weir::stages
