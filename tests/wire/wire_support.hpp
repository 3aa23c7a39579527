// What the wire tests share: patterned bytes, frames on exact-size heap buffers, and names of verdicts in failures.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <ostream>
#include <random>
#include <span>
#include <vector>

#include "wire/encode.hpp"
#include "wire/fragment.hpp"
#include "wire/network.hpp"

namespace weir::core {
inline void PrintTo(PacketCounter counter, std::ostream* out) {
    *out << packet_counters[static_cast<std::size_t>(counter)].name;
}
}  // namespace weir::core

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

inline bool same(const std::byte* at, std::span<const std::byte> expected) {
    return expected.empty() || std::memcmp(at, expected.data(), expected.size()) == 0;
}

}  // namespace weir::wire::test
