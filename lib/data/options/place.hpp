// Where in a configuration something stands.
#pragma once

#include <cstdint>
#include <string>

namespace weir::options {

/// Where something was written. Equal to every other place: two configurations that say the same are the same.
struct Place {
    std::string file;
    std::uint32_t line = 0;
    friend bool operator==(const Place&, const Place&) noexcept { return true; }
};

}  // namespace weir::options
