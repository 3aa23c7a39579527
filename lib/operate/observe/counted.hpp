// "1 packet", "2 packets".
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace weir::observe {

[[nodiscard]] inline std::string counted(std::uint64_t n, const char* what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

}  // namespace weir::observe
