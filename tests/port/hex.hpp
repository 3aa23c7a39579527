// Frames as they are written in a test: "0a010002 0806".
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace weir::port {

inline std::vector<std::uint8_t> from_hex(std::string_view text) {
    std::vector<std::uint8_t> bytes;
    unsigned value = 0;
    unsigned digits = 0;
    for (const char c : text) {
        if (c == ' ') continue;
        value = value << 4 | static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
        if (++digits % 2 == 0) bytes.push_back(static_cast<std::uint8_t>(value));
    }
    return bytes;
}

}  // namespace weir::port
