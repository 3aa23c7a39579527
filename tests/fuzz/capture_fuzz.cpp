// libFuzzer target: any bytes as a capture file. The reader may refuse them or stop early, nothing else; every
// delivered byte is read, so that a length beyond the buffer is seen.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "core/error.hpp"
#include "port/capture_reader.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) {
        return 0;  // fmemopen does not make empty streams
    }
    const auto copy = std::make_unique<std::uint8_t[]>(size);
    std::memcpy(copy.get(), data, size);
    std::FILE* stream = fmemopen(copy.get(), size, "rb");
    if (stream == nullptr) {
        return 0;
    }
    try {
        weir::port::CaptureReader reader(stream, "fuzz");
        weir::port::CaptureReader::Record record;
        std::uint64_t delivered = 0;
        std::uint64_t sum = 0;
        while (reader.next(record)) {
            ++delivered;
            for (const std::byte value : record.bytes) {
                sum += std::to_integer<std::uint64_t>(value);
            }
            if (record.wire_bytes < record.bytes.size() || record.time_ns < 0) {
                std::abort();
            }
        }
        // An accumulator that is used, so that the reads above stay.
        if (delivered != reader.records() || sum > 255 * reader.bytes() ||
            reader.cut_off() == reader.cut_off_text().empty()) {
            std::abort();
        }
    } catch (const weir::core::RunError&) {
    }
    return 0;
}
