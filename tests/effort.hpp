// How often tests repeat themselves that try the same with other random numbers: as often as they say, or less where
// that takes too long.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "sanitized.hpp"

namespace weir::test {

/// WEIR_TEST_EFFORT: "whole", which is also what no word means, or "quick" for who wants an answer while he works.
[[nodiscard]] inline bool is_quick() {
    const char* effort = std::getenv("WEIR_TEST_EFFORT");
    const std::string_view word = effort == nullptr || *effort == '\0' ? "whole" : effort;
    if (word != "whole" && word != "quick")
        throw std::invalid_argument("WEIR_TEST_EFFORT=" + std::string(word) + "; accepted: whole or quick");
    return word == "quick";
}

/// Of how many repetitions one is left, in each case.
struct OneIn {
    unsigned sanitized = 8;  ///< everything takes a few times as long
    unsigned quick = 10;
};

/// One of how many repetitions is done now; 1 is all of them.
[[nodiscard]] inline unsigned one_in(OneIn less = {}) {
    return std::max(sanitized ? less.sanitized : 1U, is_quick() ? less.quick : 1U);
}

/// How often a test repeats itself that does so `times` times where nobody waits for it.
template <class T>
[[nodiscard]] T repeated(T times, OneIn less = {}) {
    const auto part = static_cast<T>(one_in(less));
    return (times + part - 1) / part;
}

}  // namespace weir::test
