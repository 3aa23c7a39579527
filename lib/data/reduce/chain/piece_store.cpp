#include "reduce/chain/piece_store.hpp"

#include <x86intrin.h>

#include <cstring>

#include "reduce/zstd_reducer.hpp"

namespace weir::reduce {

namespace {

class ZstdCodec final : public PieceCodec {
public:
    explicit ZstdCodec(int level) : zstd_(level) { static_assert(piece_bytes == ZstdReducer::piece_bytes); }
    [[nodiscard]] std::string_view kind() const noexcept override { return "zstd"; }
    [[nodiscard]] std::uint8_t encoding() const noexcept override { return encoding_zstd; }
    [[nodiscard]] std::size_t bound(std::size_t raw_bytes) const noexcept override {
        return ZstdReducer::bound(raw_bytes);
    }
    [[nodiscard]] std::size_t encode(std::span<const std::byte> piece, std::span<std::byte> out) noexcept override {
        return zstd_.compress(piece, out);
    }

private:
    ZstdReducer zstd_;
};

}  // namespace

std::unique_ptr<PieceCodec> make_zstd_codec(int level) {
    return std::make_unique<ZstdCodec>(level);
}

StoredPiece PieceStore::put(std::span<const std::byte> piece, std::span<std::byte> room) noexcept {
    StoredPiece stored;
    stored.bytes = static_cast<std::uint32_t>(piece.size());
    if (codec_ == nullptr) {
        std::memcpy(room.data(), piece.data(), piece.size());
        return stored;
    }
    const std::uint64_t begin = __rdtsc();
    const std::size_t bytes = codec_->encode(piece, room);
    if (bytes > 0) {
        stored = {static_cast<std::uint32_t>(bytes), codec_->encoding(), codec_->element_bytes()};
    } else {
        std::memcpy(room.data(), piece.data(), piece.size());
        tally_.add(CodecCounter::kept_raw);
    }
    tally_.add(CodecCounter::pieces);
    tally_.add(CodecCounter::bytes_in, piece.size());
    tally_.add(CodecCounter::bytes_out, stored.bytes);
    tally_.add(CodecCounter::cycles, __rdtsc() - begin);
    return stored;
}

}  // namespace weir::reduce
