// Where the checkout is, for tests that read its pages, examples and real data.
#pragma once

#include <filesystem>

namespace weir::test {

/// In a file of its own, so that nothing else differs from one checkout to the next, and a compiler cache serves all.
[[nodiscard]] const std::filesystem::path& source_root();

}  // namespace weir::test
