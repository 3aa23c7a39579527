// Real captures and frames, where they lie beside the checkout or WEIR_SHARED says.
#pragma once

#include <cstdlib>
#include <filesystem>

#include "source_root.hpp"

namespace weir::test {

inline std::filesystem::path shared_data() {
    const char* set = std::getenv("WEIR_SHARED");
    return set != nullptr ? std::filesystem::path(set) : source_root().parent_path() / "shared";
}

}  // namespace weir::test
