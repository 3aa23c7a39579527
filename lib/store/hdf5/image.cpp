// Puts the payload of an event into the chunks of its image. See image.hpp.
#include "store/hdf5/image.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "core/error.hpp"

namespace weir::store::hdf5 {

ImageAssembler::ImageAssembler(const Layout& layout)
    : layout_(layout), chunk_bytes_(layout.chunk_bytes()), touched_(layout.chunks(), false) {}

void ImageAssembler::add_stretch(std::uint64_t offset, std::uint64_t bytes) {
    if (bytes == 0) return;
    if (!stretches_.empty() && stretches_.back().offset + stretches_.back().bytes == offset)
        stretches_.back().bytes += bytes;
    else
        stretches_.push_back({offset, bytes});
}

/// What came of a message, without its gaps. After the last gap that is known comes the rest of what was received.
void ImageAssembler::add_source(const SourceInfo& source, std::uint64_t module) {
    const std::uint64_t base = module * layout_.module_bytes();
    std::uint64_t left = source.received_bytes;
    std::uint64_t at = 0;
    for (const MissingRange& range : source.missing) {
        const std::uint64_t bytes = std::min<std::uint64_t>(left, range.offset - at);
        add_stretch(base + at, bytes);
        left -= bytes;
        at = std::uint64_t{range.offset} + range.bytes;
    }
    if (left > 0 && at + left > layout_.module_bytes())
        throw core::RunError(
            fmt::format("source {} has more bytes than the image of its module: {}", source.id, at + left));
    add_stretch(base + at, left);
    gaps_ = gaps_ || source.state != SourceState::complete;
}

void ImageAssembler::begin(const EventInfo& event) {
    stretches_.clear();
    stretch_ = 0;
    used_ = 0;
    gaps_ = false;
    if (event.content != Content::received) {
        add_stretch(0, layout_.image_bytes());
    } else {
        for (std::size_t i = 0; i < event.sources.size(); ++i) add_source(event.sources[i], i);
    }
    std::fill(touched_.begin(), touched_.end(), false);
}

/// The body of such a block is what the file's filter, or none, would make of a chunk.
bool ImageAssembler::stores(const BlockHeader& header) const {
    if (is_sparse(header.encoding)) return false;
    if (header.encoding == Encoding::raw) return header.stored_bytes == header.raw_bytes;
    const auto codec = static_cast<std::uint8_t>(codec_of(header.encoding));
    if (codec != static_cast<std::uint8_t>(layout_.description.codec)) return false;
    return !has_elements(header.encoding) || header.element_bytes == element_bytes(layout_.element);
}

bool ImageAssembler::take_stored(const BlockHeader& header, std::span<const std::byte> body, DataFile& file) {
    if (stretch_ == stretches_.size() || header.raw_bytes != chunk_bytes_ || !stores(header)) return false;
    const Stretch& stretch = stretches_[stretch_];
    const std::uint64_t offset = stretch.offset + used_;
    if (offset % chunk_bytes_ != 0 || stretch.bytes - used_ < chunk_bytes_) return false;
    file.put_chunk(offset / chunk_bytes_, body, header.encoding != Encoding::raw);
    used_ += chunk_bytes_;
    if (used_ == stretch.bytes) {
        ++stretch_;
        used_ = 0;
    }
    return true;
}

void ImageAssembler::take(std::span<const std::byte> decoded) {
    while (!decoded.empty()) {
        if (stretch_ == stretches_.size()) throw core::RunError("an event has more payload than its sources say");
        const Stretch& stretch = stretches_[stretch_];
        const auto bytes = std::min<std::uint64_t>(decoded.size(), stretch.bytes - used_);
        copy(stretch.offset + used_, decoded.first(bytes));
        decoded = decoded.subspan(bytes);
        used_ += bytes;
        if (used_ == stretch.bytes) {
            ++stretch_;
            used_ = 0;
        }
    }
}

void ImageAssembler::fill(std::byte* to, std::uint64_t bytes) const {
    const auto element = layout_.fill();
    const std::uint32_t size = element_bytes(layout_.element);
    for (std::uint64_t at = 0; at < bytes; at += size) std::memcpy(to + at, element.data(), size);
}

void ImageAssembler::copy(std::uint64_t offset, std::span<const std::byte> bytes) {
    if (image_.empty()) {
        image_.resize(layout_.chunks() * chunk_bytes_);
        fill(image_.data(), image_.size());  // the rows of the last chunk that are no rows of the image stay so
    }
    for (std::uint64_t chunk = offset / chunk_bytes_; chunk * chunk_bytes_ < offset + bytes.size(); ++chunk) {
        if (!touched_[chunk] && gaps_) fill(image_.data() + chunk * chunk_bytes_, chunk_bytes_);
        touched_[chunk] = true;
    }
    std::memcpy(image_.data() + offset, bytes.data(), bytes.size());
}

/// A pixel of which one byte is missing is missing.
void ImageAssembler::fill_torn_elements() {
    const std::uint32_t size = element_bytes(layout_.element);
    for (const Stretch& stretch : stretches_)
        for (const std::uint64_t edge : {stretch.offset, stretch.offset + stretch.bytes}) {
            const std::uint64_t element = edge / size * size;
            if (element != edge && touched_[element / chunk_bytes_]) fill(image_.data() + element, size);
        }
}

void ImageAssembler::end(DataFile& file) {
    if (stretch_ != stretches_.size()) throw core::RunError("an event has less payload than its sources say");
    if (gaps_) fill_torn_elements();
    for (std::uint64_t chunk = 0; chunk < touched_.size(); ++chunk)
        if (touched_[chunk])
            file.encode_chunk(chunk, std::span<const std::byte>(image_).subspan(chunk * chunk_bytes_, chunk_bytes_));
}

}  // namespace weir::store::hdf5
