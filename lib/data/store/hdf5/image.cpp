// Puts the payload of an event into the chunks of its image. See image.hpp.
#include "store/hdf5/image.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "core/error.hpp"

namespace weir::store::hdf5 {

ImageAssembler::ImageAssembler(const Layout& layout)
    : layout_(layout),
      chunk_bytes_(std::uint64_t{layout.chunk_rows} * layout.columns * layout.bits / 8),
      touched_(layout.chunks(), false) {}

/// What came of a message, without its gaps. After the last gap that is known comes the rest of what was received.
void ImageAssembler::add_source(const SourceInfo& source, std::uint64_t module) {
    const std::uint64_t base = module * layout_.part_bytes();
    std::uint64_t left = source.received_bytes;
    std::uint64_t at = 0;
    for (const MissingRange& range : source.missing) {
        const std::uint64_t bytes = std::min<std::uint64_t>(left, range.offset - at);
        came_.add(base + at, bytes);
        left -= bytes;
        at = std::uint64_t{range.offset} + range.bytes;
    }
    if (left > 0 && at + left > layout_.part_bytes())
        throw core::RunError(
            fmt::format("source {} has more bytes than the image of its module: {}", source.id, at + left));
    came_.add(base + at, left);
}

void ImageAssembler::begin(const EventInfo& event) {
    came_.clear();
    stretch_ = 0;
    used_ = 0;
    if (event.content != Content::received) {
        came_.add(0, layout_.image_bytes());
    } else {
        for (std::size_t i = 0; i < event.sources.size(); ++i) add_source(event.sources[i], i);
    }
    std::fill(touched_.begin(), touched_.end(), false);
}

/// The body of such a block is what the file's filter, or none, would make of a chunk.
bool ImageAssembler::stores(const BlockHeader& header) const {
    if (is_sparse(header.encoding) || layout_.is_packed()) return false;
    if (header.encoding == Encoding::raw) return header.stored_bytes == header.raw_bytes;
    const auto codec = static_cast<std::uint8_t>(codec_of(header.encoding));
    if (codec != static_cast<std::uint8_t>(layout_.description.codec)) return false;
    return !has_elements(header.encoding) || header.element_bytes == element_bytes(layout_.element);
}

bool ImageAssembler::take_stored(const BlockHeader& header, std::span<const std::byte> body, DataFile& file) {
    if (stretch_ == came_.all().size() || header.raw_bytes != chunk_bytes_ || !stores(header)) return false;
    const ImageStretches::Stretch& stretch = came_.all()[stretch_];
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
        if (stretch_ == came_.all().size()) throw core::RunError("an event has more payload than its sources say");
        const ImageStretches::Stretch& stretch = came_.all()[stretch_];
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

void ImageAssembler::copy(std::uint64_t offset, std::span<const std::byte> bytes) {
    part_.resize(layout_.chunks() * chunk_bytes_);
    for (std::uint64_t chunk = offset / chunk_bytes_; chunk * chunk_bytes_ < offset + bytes.size(); ++chunk)
        touched_[chunk] = true;
    std::memcpy(part_.data() + offset, bytes.data(), bytes.size());
}

/// With the marker where something is missing, and in the rows of the last chunk that are none of the image.
std::span<const std::byte> ImageAssembler::pixels_of(std::uint64_t chunk) {
    const std::uint64_t begin = chunk * chunk_bytes_;
    std::span<std::byte> pixels(part_.data() + begin, chunk_bytes_);
    if (layout_.is_packed()) {
        pixels_.resize(layout_.chunk_bytes());
        wire::unpack_pixels(layout_.bits, pixels, pixels_);
        pixels = pixels_;
    }
    came_.for_each_gap(begin, begin + chunk_bytes_, [&](std::uint64_t from, std::uint64_t to) {
        fill_pixels(layout_, wire::pixels_of_bytes(layout_.bits, from - begin, to - begin), pixels);
    });
    return pixels;
}

void ImageAssembler::end(DataFile& file) {
    if (stretch_ != came_.all().size()) throw core::RunError("an event has less payload than its sources say");
    for (std::uint64_t chunk = 0; chunk < touched_.size(); ++chunk)
        if (touched_[chunk]) file.encode_chunk(chunk, pixels_of(chunk));
}

}  // namespace weir::store::hdf5
