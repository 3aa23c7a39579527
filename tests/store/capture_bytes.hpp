// Writes small captures by hand, byte by byte, so that the reader is not tested against the library it is made of.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace weir::store::test {

using Bytes = std::vector<std::uint8_t>;

/// Appends integers in a chosen byte order.
class Builder {
public:
    explicit Builder(bool big_endian) : big_endian_(big_endian) {}
    Builder& number(std::uint64_t value, unsigned count) {
        for (unsigned i = 0; i < count; ++i) {
            const unsigned shift = 8 * (big_endian_ ? count - 1 - i : i);
            bytes.push_back(static_cast<std::uint8_t>(value >> shift));
        }
        return *this;
    }
    Builder& u16(std::uint64_t value) { return number(value, 2); }
    Builder& u32(std::uint64_t value) { return number(value, 4); }
    Builder& append(const Bytes& more) {
        bytes.insert(bytes.end(), more.begin(), more.end());
        return *this;
    }
    Bytes bytes;

private:
    bool big_endian_;
};

struct PcapOptions {
    bool big_endian = false;
    bool nanoseconds = true;
    std::uint32_t snapshot_bytes = 262144;
    std::uint32_t link = 1;
};

inline Bytes pcap_header(const PcapOptions& options = {}) {
    Builder out(options.big_endian);
    out.u32(options.nanoseconds ? 0xa1b23c4d : 0xa1b2c3d4).u16(2).u16(4).u32(0).u32(0);
    out.u32(options.snapshot_bytes).u32(options.link);
    return out.bytes;
}

/// `fraction` is in the unit of the file. wire_bytes 0 stands for the frame's own size.
inline Bytes pcap_record(const PcapOptions& options, std::uint32_t seconds, std::uint32_t fraction, const Bytes& frame,
                         std::uint32_t wire_bytes = 0) {
    Builder out(options.big_endian);
    out.u32(seconds).u32(fraction).u32(frame.size()).u32(wire_bytes != 0 ? wire_bytes : frame.size());
    return out.append(frame).bytes;
}

/// Section header and one Ethernet interface. `resolution` is if_tsresol: 6 microseconds, 9 nanoseconds.
inline Bytes pcapng_header(bool big_endian, unsigned resolution, std::uint16_t link = 1) {
    Builder out(big_endian);
    out.u32(0x0a0d0d0a).u32(28).u32(0x1a2b3c4d).u16(1).u16(0).number(~0ULL, 8).u32(28);
    out.u32(1).u32(32).u16(link).u16(0).u32(262144);
    out.u16(9).u16(1).number(resolution, 1).append({0, 0, 0}).u16(0).u16(0).u32(32);
    return out.bytes;
}

/// An Enhanced Packet Block.
inline Bytes pcapng_record(bool big_endian, std::uint64_t ticks, const Bytes& frame, std::uint32_t wire_bytes = 0) {
    const std::size_t padded = (frame.size() + 3) / 4 * 4;
    Builder out(big_endian);
    out.u32(6).u32(32 + padded).u32(0).u32(ticks >> 32).u32(ticks & 0xffffffffU);
    out.u32(frame.size()).u32(wire_bytes != 0 ? wire_bytes : frame.size()).append(frame);
    return out.append(Bytes(padded - frame.size(), 0)).u32(32 + padded).bytes;
}

/// A block of pcapng with this body.
inline Bytes block(bool big_endian, std::uint32_t type, const Bytes& body) {
    const std::size_t padded = (body.size() + 3) / 4 * 4;
    Builder out(big_endian);
    out.u32(type).u32(12 + padded).append(body).append(Bytes(padded - body.size(), 0)).u32(12 + padded);
    return out.bytes;
}

/// An interface with the options given as (code, value).
inline Bytes interface(bool big_endian, const std::vector<std::pair<std::uint16_t, Bytes>>& options, unsigned link = 1,
                       std::uint32_t snapshot = 262144) {
    Builder out(big_endian);
    out.u16(link).u16(0).u32(snapshot);
    for (const auto& [code, value] : options)
        out.u16(code).u16(value.size()).append(value).append(Bytes((4 - value.size() % 4) % 4, 0));
    out.u16(0).u16(0);
    return block(big_endian, 1, out.bytes);
}

/// An Enhanced Packet Block; four bytes of the packet are not in it.
inline Bytes enhanced(bool big_endian, std::uint32_t which, std::uint64_t ticks, const Bytes& frame,
                      const Bytes& options) {
    Builder out(big_endian);
    out.u32(which).u32(ticks >> 32U).u32(ticks & 0xffffffffU).u32(frame.size()).u32(frame.size() + 4).append(frame);
    out.append(Bytes((4 - frame.size() % 4) % 4, 0)).append(options);
    return block(big_endian, 6, out.bytes);
}

inline Bytes join(std::initializer_list<Bytes> parts) {
    Bytes whole;
    for (const Bytes& part : parts) {
        whole.insert(whole.end(), part.begin(), part.end());
    }
    return whole;
}

/// A frame that can be told from others.
inline Bytes frame_of(std::size_t size, std::uint8_t seed) {
    Bytes frame(size);
    for (std::size_t i = 0; i < size; ++i) {
        frame[i] = static_cast<std::uint8_t>(seed + i * 7);
    }
    return frame;
}

}  // namespace weir::store::test
