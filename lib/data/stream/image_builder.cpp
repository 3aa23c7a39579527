#include "stream/image_builder.hpp"

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "reduce/pack/filter_header.hpp"
#include "stream/compression.hpp"
#include "wire/bytes.hpp"

namespace weir::stream {

using reduce::pack::Codec;
using store::BlockHeader;
using store::Content;
using store::EventInfo;
using store::SourceInfo;
using store::hdf5::Layout;

namespace {

/// Of filters 32004 and 32008 alike: u64 decoded bytes, u32 bytes of a block.
constexpr std::size_t header_bytes = reduce::pack::bitshuffle_header_bytes;

/// How far the bytes of a source reach into its module.
std::uint64_t reach(const EventInfo& event, const SourceInfo& source) {
    std::uint64_t bytes = event.content_bytes(source);
    if (event.content == Content::received)
        for (const store::MissingRange& range : source.missing) bytes += range.bytes;
    return bytes;
}

}  // namespace

bool is_image_of(const Layout& layout, const EventInfo& event) {
    if (!layout.image || event.content != layout.description.content || event.sources.size() != layout.sources.size())
        return false;
    for (std::size_t i = 0; i < event.sources.size(); ++i) {
        const SourceInfo& source = event.sources[i];
        const bool exact = event.content != Content::received || source.size_known();
        const std::uint64_t bytes = reach(event, source);
        if (source.id != layout.sources[i] || bytes > layout.part_bytes()) return false;
        if (exact && bytes != layout.part_bytes()) return false;
    }
    return true;
}

std::size_t ImageBuilder::bytes_max(const Layout& layout) noexcept {
    return layout.image_bytes() + header_bytes;
}

void ImageBuilder::begin(const Layout& layout, const EventInfo& event, std::span<std::byte> to) {
    layout_ = &layout;
    event_ = &event;
    to_ = to;
    codec_.reset();
    used_ = decoded_bytes_ = 0;
    const bool gaps =
        event.content == Content::received && std::ranges::any_of(event.sources, [](const SourceInfo& source) {
            return source.state != store::SourceState::complete;
        });
    packable_ = !gaps && !layout.is_packed();
    if (layout.is_packed()) {
        parts_.resize(layout.sources.size() * layout.part_bytes());
        came_.clear();
    } else if (gaps) {
        fill();
    }
    placer_.emplace(event, [this](std::size_t source, std::uint64_t offset, std::span<const std::byte> bytes) {
        if (offset + bytes.size() > layout_->part_bytes())
            throw core::RunError("internal error: a source has more bytes than its module");
        const std::uint64_t at = source * layout_->part_bytes() + offset;
        const bool several = layout_->is_packed();  // pixels in a byte
        std::memcpy((several ? parts_.data() : to_.data()) + at, bytes.data(), bytes.size());
        if (several) came_.add(at, bytes.size());
    });
}

void ImageBuilder::take(const BlockHeader& header, std::span<const std::byte> body) {
    if (header.raw_bytes == 0) return;
    if (packable_ && take_packed(header, body)) return;
    unpack();
    const auto decoded = decoder_.decode(header, body);
    if (!decoded) throw core::RunError("internal error: the stream sink was given a block that cannot be decoded");
    lay_out(*decoded);
}

/// Appends the blocks of a packed piece. False, and nothing is changed, if they do not go with those before.
bool ImageBuilder::take_packed(const BlockHeader& header, std::span<const std::byte> body) {
    const auto codec = static_cast<Codec>(store::codec_of(header.encoding));
    if (store::is_sparse(header.encoding) || compression_name(codec).empty() || body.size() < header_bytes)
        return false;
    if (store::has_elements(header.encoding) && header.element_bytes != store::hdf5::element_bytes(layout_->element))
        return false;
    const auto block = wire::load_be<std::uint32_t>(body.data() + 8);
    if (block == 0 || wire::load_be<std::uint64_t>(body.data()) != header.raw_bytes) return false;
    // Only the last block of the whole may be shorter than the others, and what fills no block.
    if (codec_ && (*codec_ != codec || block_bytes_ != block || decoded_bytes_ % block != 0)) return false;
    const std::span<const std::byte> blocks = body.subspan(header_bytes);
    if (!codec_) used_ = header_bytes;
    if (used_ + blocks.size() > to_.size() || decoded_bytes_ + header.raw_bytes > layout_->image_bytes()) return false;
    codec_ = codec;
    block_bytes_ = block;
    std::memcpy(to_.data() + used_, blocks.data(), blocks.size());
    used_ += blocks.size();
    decoded_bytes_ += header.raw_bytes;
    wire::store_be(to_.data(), decoded_bytes_);
    wire::store_be(to_.data() + 8, block_bytes_);
    return true;
}

/// From packed to plain, if anything is packed.
void ImageBuilder::unpack() {
    packable_ = false;
    if (!codec_) return;
    plain_.resize(decoded_bytes_);
    const std::string_view problem =
        unpacker_.unpack(*codec_, store::hdf5::element_bytes(layout_->element), to_.first(used_), plain_);
    if (!problem.empty()) throw core::RunError("internal error: the stream sink was given a packed piece that is none");
    codec_.reset();
    lay_out(plain_);
}

void ImageBuilder::lay_out(std::span<const std::byte> decoded) {
    placer_->take(decoded);
}

ImageBuilder::Result ImageBuilder::end() {
    if (codec_) return {to_.first(used_), codec_};
    if (layout_->is_packed()) spread();
    return {to_.first(layout_->image_bytes()), {}};
}

std::span<const std::byte> ImageBuilder::pixels(const Result& result) {
    if (!result.codec) return result.bytes;
    plain_.resize(layout_->image_bytes());
    const std::string_view problem =
        unpacker_.unpack(*result.codec, store::hdf5::element_bytes(layout_->element), result.bytes, plain_);
    if (!problem.empty())
        throw core::RunError("internal error: the stream sink has packed an image that cannot be unpacked");
    return plain_;
}

/// Gives each pixel bytes of its own. One of which some bits are missing is missing.
void ImageBuilder::spread() {
    const std::span<std::byte> pixels = to_.first(layout_->image_bytes());
    wire::unpack_pixels(layout_->bits, parts_, pixels);
    came_.for_each_gap(0, parts_.size(), [&](std::uint64_t begin, std::uint64_t end) {
        store::hdf5::fill_pixels(*layout_, wire::pixels_of_bytes(layout_->bits, begin, end), pixels);
    });
}

/// A pixel of which some bytes came keeps them: nothing that was received is lost on the way.
void ImageBuilder::fill() {
    store::hdf5::fill_pixels(*layout_, {0, layout_->image_rows() * layout_->columns}, to_);
}

}  // namespace weir::stream
