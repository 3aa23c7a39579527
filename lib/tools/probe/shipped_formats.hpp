// The described formats of formats/*.toml, in the program: tried without being named.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "wire/format.hpp"

namespace weir::probe {

struct ShippedFile {
    std::string_view name;
    std::string_view text;
};
[[nodiscard]] std::span<const ShippedFile> shipped_files();

/// All of them, with the variants that the files keep as comments.
[[nodiscard]] const std::vector<wire::DeclaredSpec>& shipped_formats();

}  // namespace weir::probe
