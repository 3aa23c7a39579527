#include "reduce/pack/pack_codec.hpp"

namespace weir::reduce {

namespace {

class PackCodec final : public PieceCodec {
public:
    explicit PackCodec(const pack::PackOptions& options) : packer_(options, piece_bytes) {}
    [[nodiscard]] std::string_view kind() const noexcept override { return "pack"; }
    [[nodiscard]] std::uint8_t encoding() const noexcept override {
        return static_cast<std::uint8_t>(packer_.options().codec);
    }
    [[nodiscard]] std::uint8_t element_bytes() const noexcept override {
        const pack::PackOptions& options = packer_.options();
        return pack::has_elements(options.codec) ? static_cast<std::uint8_t>(options.element_bytes) : 0;
    }
    [[nodiscard]] std::size_t bound(std::size_t raw_bytes) const noexcept override { return packer_.bound(raw_bytes); }
    [[nodiscard]] std::size_t encode(std::span<const std::byte> piece, std::span<std::byte> out) noexcept override {
        return packer_.pack(piece, out);
    }

private:
    pack::Packer packer_;
};

}  // namespace

std::unique_ptr<PieceCodec> make_pack_codec(const pack::PackOptions& options) {
    return std::make_unique<PackCodec>(options);
}

}  // namespace weir::reduce
