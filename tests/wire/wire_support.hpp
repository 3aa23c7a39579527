// What the wire tests share: patterned bytes, frames on exact-size heap buffers, and names of verdicts in failures.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <ostream>
#include <random>
#include <span>
#include <vector>

#include "wire/encode.hpp"
#include "wire/format.hpp"
#include "wire/fragment.hpp"
#include "wire/network.hpp"

namespace weir::wire {
inline void PrintTo(PacketCounter counter, std::ostream* out) {
    *out << packet_counters[static_cast<std::size_t>(counter)].name;
}
}  // namespace weir::wire

namespace weir::wire::test {

using Bytes = std::vector<std::byte>;

inline Bytes pattern(std::size_t bytes, std::uint32_t seed = 1) {
    std::mt19937 random(seed);
    Bytes out(bytes);
    for (std::byte& value : out) value = static_cast<std::byte>(random());
    return out;
}

inline Bytes bytes_of(std::span<const std::uint8_t> values) {
    Bytes out(values.size());
    if (!values.empty()) std::memcpy(out.data(), values.data(), values.size());
    return out;
}

/// A copy whose end is the end of its allocation, so that AddressSanitizer sees a read of one byte too many.
class Exact {
public:
    explicit Exact(std::span<const std::byte> bytes) : data_(new std::byte[bytes.size()]), bytes_(bytes.size()) {
        if (!bytes.empty()) std::memcpy(data_.get(), bytes.data(), bytes.size());
    }
    [[nodiscard]] const std::byte* data() const { return data_.get(); }
    [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(bytes_); }

private:
    std::unique_ptr<std::byte[]> data_;
    std::size_t bytes_;
};

/// A datagram that is only a payload.
inline Datagram datagram_of(const Exact& payload) {
    Datagram datagram;
    datagram.payload = payload.data();
    datagram.payload_bytes = payload.size();
    return datagram;
}

/// One packet through the table of formats, as the pipeline does it.
inline Verdict decode(const char* format, const FormatContext& context, const Exact& payload, Fragment& out) {
    Verdict verdict = Verdict::count_;
    const Datagram datagram = datagram_of(payload);
    find_format(format)->decode_burst(context, {&datagram, 1}, &out, &verdict);
    return verdict;
}
inline Verdict decode(const char* format, const FormatOptions& options, const Exact& payload, Fragment& out) {
    return decode(format, find_format(format)->make_context(options), payload, out);
}
inline Verdict verdict_of(const char* format, const Bytes& payload, const FormatOptions& options = {}) {
    Fragment fragment;
    return decode(format, options, Exact(payload), fragment);
}

/// A frame, which must not make the decoder look beyond what is there.
inline Verdict parse(const Bytes& frame, Datagram& out, std::uint32_t wire_bytes = 0) {
    const Exact exact(frame);
    const Verdict verdict = parse_frame(exact.data(), exact.size(), std::max(exact.size(), wire_bytes), out);
    if (verdict == ok) {  // the promise: these can be read (the pointers die with `exact`)
        EXPECT_GE(out.payload, exact.data());
        EXPECT_LE(out.payload + out.payload_bytes, exact.data() + exact.size());
        EXPECT_LE(out.ip + out.ip_bytes, exact.data() + exact.size());
        EXPECT_EQ(static_cast<std::uint32_t>(out.payload - out.ip), out.ip_header_bytes() + 8);
    }
    return verdict;
}
inline Verdict parse(const Bytes& frame) {
    Datagram datagram;
    return parse(frame, datagram);
}

inline bool same(const std::byte* at, std::span<const std::byte> expected) {
    return expected.empty() || std::memcmp(at, expected.data(), expected.size()) == 0;
}

}  // namespace weir::wire::test
