// libFuzzer target: any bytes as an Ethernet frame. What parse_frame promises to be readable is read, on a buffer that
// ends where the frame ends.
#include <cstdlib>
#include <cstring>
#include <memory>

#include "wire/network.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace weir::wire;
    if (size < 1) return 0;
    // The first byte says how much longer the frame was on the wire.
    const auto bytes = static_cast<std::uint32_t>(size - 1);
    const auto frame = std::make_unique<std::byte[]>(bytes);
    std::memcpy(frame.get(), data + 1, bytes);
    Datagram datagram;
    const Verdict verdict = parse_frame(frame.get(), bytes, bytes + data[0], datagram);
    if (verdict >= Verdict::count_) std::abort();
    if (verdict != ok) return 0;
    const std::byte* end = frame.get() + bytes;
    if (datagram.ip < frame.get() || datagram.ip + datagram.ip_bytes > end) std::abort();
    if (datagram.payload < datagram.ip || datagram.payload + datagram.payload_bytes > datagram.ip + datagram.ip_bytes)
        std::abort();
    std::uint32_t sum = 0;
    for (std::uint32_t i = 0; i < datagram.payload_bytes; ++i)
        sum += std::to_integer<std::uint32_t>(datagram.payload[i]);
    if (sum > 255 * datagram.payload_bytes) std::abort();
    return 0;
}
