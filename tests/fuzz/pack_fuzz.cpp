// libFuzzer target: any bytes as a packed piece. The first byte chooses the codec and the size of elements, two more
// the size that is decoded to. With its high bit set the bytes are packed instead, and must come back.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>

#include "reduce/pack/packer.hpp"
#include "reduce/pack/unpacker.hpp"

namespace {

using namespace weir::reduce::pack;

/// A copy that is exactly as large, so that a read beyond its end is seen.
struct Exact {
    explicit Exact(std::size_t bytes) : size(bytes), memory(std::make_unique<std::byte[]>(bytes)) {}
    [[nodiscard]] std::span<std::byte> all() const { return {memory.get(), size}; }
    std::size_t size;
    std::unique_ptr<std::byte[]> memory;
};

void round_trip(Codec codec, std::size_t element_bytes, std::span<const std::byte> raw) {
    constexpr std::size_t piece_bytes = std::size_t{256} << 10U;
    if (raw.size() > piece_bytes) return;
    Packer packer({codec, 1, element_bytes, raw.size() % 2 == 0}, piece_bytes);
    const Exact out(packer.bound(raw.size()));
    const std::size_t bytes = packer.pack(raw, out.all());
    if (bytes == 0) return;
    if (bytes >= raw.size()) std::abort();
    const Exact packed(bytes);
    std::copy_n(out.all().begin(), bytes, packed.all().begin());
    const Exact back(raw.size());
    if (decoded_bytes(codec, packed.all()) != raw.size()) std::abort();
    if (!Unpacker().unpack(codec, element_bytes, packed.all(), back.all()).empty()) std::abort();
    if (!std::equal(raw.begin(), raw.end(), back.all().begin())) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 3) return 0;
    const auto codec = static_cast<Codec>(data[0] % 8U);  // two of them are none
    const std::size_t element_bytes = std::size_t{1} << (data[0] >> 3U & 3U);
    const Exact in(size - 3);
    if (size > 3) std::memcpy(in.memory.get(), data + 3, size - 3);
    if ((data[0] & 0x80U) != 0) {
        if (codec != Codec::raw && codec <= Codec::bits) round_trip(codec, element_bytes, in.all());
        return 0;
    }
    static Unpacker unpacker;
    const Exact out(data[1] + 256U * data[2]);
    static_cast<void>(decoded_bytes(codec, in.all()));
    static_cast<void>(unpacker.unpack(codec, element_bytes, in.all(), out.all()));
    // What a header says is what it decodes to, or nothing.
    if (const auto bytes = decoded_bytes(codec, in.all()); bytes && *bytes <= (1U << 20U)) {
        const Exact said(*bytes);
        static_cast<void>(unpacker.unpack(codec, element_bytes, in.all(), said.all()));
    }
    return 0;
}
