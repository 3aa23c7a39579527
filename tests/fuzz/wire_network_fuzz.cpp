// libFuzzer target: any bytes as an Ethernet frame. What parse_frame promises to be readable is read, on a buffer that
// ends where the frame ends.
#include <cstdlib>
#include <cstring>
#include <memory>

#include "wire/decapsulation.hpp"
#include "wire/network.hpp"

namespace {

/// On a copy, which is written to.
void take_off(const std::byte* frame, std::uint32_t bytes, std::uint32_t wire_bytes) {
    using namespace weir::wire;
    const auto copy = std::make_unique<std::byte[]>(bytes);
    std::memcpy(copy.get(), frame, bytes);
    const Decapsulated is = decapsulate(copy.get(), bytes, wire_bytes, Tunnels::all());
    if (is.verdict >= Verdict::count_ || is.layers > tunnel_layers_max) std::abort();
    if (is.front_bytes + is.captured_bytes > bytes || is.captured_bytes > is.wire_bytes) std::abort();
    const bool as_it_was = is.front_bytes == 0 && std::memcmp(copy.get(), frame, bytes) == 0;
    if (is.layers == 0 && (!as_it_was || is.captured_bytes != bytes || is.wire_bytes != wire_bytes)) std::abort();
    Datagram datagram;
    static_cast<void>(parse_frame(copy.get() + is.front_bytes, is.captured_bytes, is.wire_bytes, datagram));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace weir::wire;
    if (size < 1) return 0;
    // The first byte says how much longer the frame was on the wire.
    const auto bytes = static_cast<std::uint32_t>(size - 1);
    const auto frame = std::make_unique<std::byte[]>(bytes);
    std::memcpy(frame.get(), data + 1, bytes);
    if (const auto found = encapsulation_of({frame.get(), bytes}); found && *name_of(found->by) == 0) std::abort();
    take_off(frame.get(), bytes, bytes + data[0]);
    Datagram datagram;
    const Verdict verdict = parse_frame(frame.get(), bytes, bytes + data[0], datagram);
    if (verdict >= Verdict::count_) std::abort();
    const bool piece = verdict == Verdict::malformed_ip_fragment && datagram.fragment;
    if (verdict != ok && !piece) return 0;
    const std::byte* end = frame.get() + bytes;
    if (datagram.ip < frame.get() || datagram.ip + datagram.ip_bytes > end) std::abort();
    if (datagram.payload < datagram.ip || datagram.payload + datagram.payload_bytes > datagram.ip + datagram.ip_bytes)
        std::abort();
    const std::uint32_t udp_bytes = piece ? 0 : udp_header_bytes;
    if (datagram.payload != datagram.ip + datagram.ip_header_bytes() + udp_bytes) std::abort();
    if (piece &&
        (datagram.payload_bytes == 0 || datagram.payload + datagram.payload_bytes != datagram.ip + datagram.ip_bytes))
        std::abort();
    if (datagram.ipv6 != (std::to_integer<unsigned>(*datagram.ip) >> 4 == 6)) std::abort();
    if (datagram.ipv6 && datagram.ip_header_bytes() > ipv6_header_bytes + ipv6_extension_bytes_max) std::abort();
    if (!piece) static_cast<void>(encapsulation_of_udp(datagram.dport, {datagram.payload, datagram.payload_bytes}, 0));
    std::uint32_t sum = 0;
    for (std::uint32_t i = 0; i < datagram.payload_bytes; ++i)
        sum += std::to_integer<std::uint32_t>(datagram.payload[i]);
    if (sum > 255 * datagram.payload_bytes) std::abort();
    return 0;
}
