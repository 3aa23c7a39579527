// libFuzzer target: any bytes as the UDP payload of a RoCEv2 packet. The first byte's lowest bit chooses whether the
// iCRC is checked, the next whether it is made right first (otherwise almost nothing would get past it), the third
// whether it goes over IPv6.
#include <cstdlib>
#include <cstring>
#include <memory>

#include "wire/bytes.hpp"
#include "wire/encode.hpp"
#include "wire/network.hpp"
#include "wire/roce.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace weir::wire;
    if (size < 1 || size > 9000) return 0;
    const auto payload_bytes = static_cast<std::uint32_t>(size - 1);
    FrameSpec spec;
    spec.dport = roce_port;
    if ((data[0] & 4) != 0) spec.ipv6.emplace();
    const std::uint32_t header_bytes = frame_header_bytes(spec);
    const std::uint32_t bytes = header_bytes + payload_bytes;
    const auto frame = std::make_unique<std::byte[]>(bytes);
    if (write_frame_headers(spec, payload_bytes, {frame.get(), bytes}) != header_bytes) std::abort();
    std::memcpy(frame.get() + header_bytes, data + 1, payload_bytes);
    const std::byte* ip = frame.get() + ethernet_header_bytes;
    if ((data[0] & 2) != 0 && payload_bytes >= roce_bth_bytes + roce_icrc_bytes)
        store_le(frame.get() + bytes - roce_icrc_bytes, roce_icrc(ip, bytes - ethernet_header_bytes - roce_icrc_bytes));

    Datagram datagram;
    if (parse_frame(frame.get(), bytes, bytes, datagram) != ok) std::abort();
    RocePacket packet;
    const Verdict verdict = decode_roce(datagram, (data[0] & 1) != 0, packet);
    if (verdict >= Verdict::count_) std::abort();
    if ((data[0] & 3) == 3 && verdict == Verdict::malformed_bad_icrc) std::abort();
    if (verdict != ok) return 0;
    if (packet.payload < datagram.payload || packet.bytes > roce_mtu_max) std::abort();
    if (packet.payload + packet.bytes + roce_icrc_bytes > frame.get() + bytes) std::abort();
    if (packet.qp > 0xffffff || packet.psn > 0xffffff) std::abort();
    std::uint32_t sum = 0;
    for (std::uint32_t i = 0; i < packet.bytes; ++i) sum += std::to_integer<std::uint32_t>(packet.payload[i]);
    if (sum > 255 * packet.bytes) std::abort();
    return 0;
}
