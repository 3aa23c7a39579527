#include "source_root.hpp"

namespace weir::test {

const std::filesystem::path& source_root() {
    static const std::filesystem::path root = WEIR_SOURCE_ROOT;
    return root;
}

}  // namespace weir::test
