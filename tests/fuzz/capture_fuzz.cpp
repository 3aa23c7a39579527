// libFuzzer target: any bytes as a capture file. The reader agrees with libpcap on them; compressed ones it may refuse
// or stop in early, nothing else. Every delivered byte is read, so that a length beyond the buffer is seen.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "core/error.hpp"
#include "store/capture/reader.hpp"
#include "store/capture_oracle.hpp"
#include "store/memory_sources.hpp"

namespace {

/// Reads it all; how many bytes were delivered.
void read_all(std::span<const std::byte> bytes) {
    using weir::store::CaptureReader;
    CaptureReader reader(std::make_unique<weir::store::test::MemoryStream>(bytes), "fuzz");
    CaptureReader::Record record;
    std::uint64_t delivered = 0;
    std::uint64_t sum = 0;
    while (reader.next(record)) {
        ++delivered;
        for (const std::byte value : record.bytes) sum += std::to_integer<std::uint64_t>(value);
        if (record.wire_bytes < record.bytes.size() || record.time_ns < 0) std::abort();
    }
    // An accumulator that is used, so that the reads above stay.
    if (delivered != reader.records() || sum > 255 * reader.bytes() ||
        reader.cut_off() == reader.cut_off_text().empty())
        std::abort();
}

bool is_compressed(std::span<const std::byte> bytes) {
    const auto first = std::to_integer<unsigned>(bytes[0]);
    return first == 0x1f || first == 0x28 || (first & 0xf0U) == 0x50 || first == 'B' || first == 0xfd || first == 4;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;  // fmemopen does not make empty streams
    const auto copy = std::make_unique<std::byte[]>(size);
    std::memcpy(copy.get(), data, size);
    const std::span<const std::byte> bytes(copy.get(), size);
    try {
        read_all(bytes);
    } catch (const weir::core::RunError&) {
    }
    if (is_compressed(bytes)) return 0;
    if (const std::string text = weir::store::test::disagreement(bytes); !text.empty()) {
        std::fprintf(stderr, "%s\n", text.c_str());
        std::abort();
    }
    return 0;
}
