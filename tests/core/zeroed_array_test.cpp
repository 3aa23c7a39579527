#include "core/zeroed_array.hpp"

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "sanitized.hpp"

namespace weir::core {
namespace {

constexpr std::size_t size = 2U << 20U;  // 16 MiB: several huge pages

double resident_part(ZeroedArray<std::uint64_t>& array) {
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const std::uintptr_t begin = (reinterpret_cast<std::uintptr_t>(&array[0]) + page - 1) / page * page;
    std::vector<unsigned char> in(array.size() * sizeof(std::uint64_t) / page - 1);
    EXPECT_EQ(::mincore(reinterpret_cast<void*>(begin), in.size() * page, in.data()), 0);
    std::size_t count = 0;
    for (const unsigned char one : in) count += one & 1U;
    return static_cast<double>(count) / static_cast<double>(in.size());
}

/// MALLOC_PERTURB_ makes calloc() write to all that it gives, as nobody has it in a run.
class Unperturbed {
public:
    Unperturbed() { ::mallopt(M_PERTURB, 0); }
    ~Unperturbed() {
        if (const char* value = std::getenv("MALLOC_PERTURB_")) ::mallopt(M_PERTURB, std::atoi(value));
    }
    Unperturbed(const Unperturbed&) = delete;
    Unperturbed& operator=(const Unperturbed&) = delete;
};

TEST(ZeroedArray, CostsNothingBeforeItIsUsedUnlessItIsTouched) {
    const Unperturbed unperturbed;
    ZeroedArray<std::uint64_t> idle(size, false);
    if (!weir::test::thread_sanitized) {  // its calloc() touches all that it gives
        EXPECT_LT(resident_part(idle), 0.5);
    }
    ZeroedArray<std::uint64_t> touched(size, true);
    EXPECT_EQ(resident_part(touched), 1.0);
}

TEST(ZeroedArray, BeginsAsZeros) {
    for (const bool touch : {false, true}) {
        ZeroedArray<std::uint64_t> array(1000, touch);
        ASSERT_EQ(array.size(), 1000U);
        for (std::size_t i = 0; i < array.size(); ++i) ASSERT_EQ(array[i], 0U);
    }
}

TEST(ZeroedArray, ACopyIsOnItsOwn) {
    ZeroedArray<std::uint64_t> first(10, false);
    first[3] = 3;
    ZeroedArray<std::uint64_t> second(first);
    first[3] = 4;
    EXPECT_EQ(second[3], 3U);
    ZeroedArray<std::uint64_t> third(1, true);
    third = first;
    first[3] = 5;
    ASSERT_EQ(third.size(), 10U);
    EXPECT_EQ(third[3], 4U);
    third = std::move(second);
    EXPECT_EQ(third[3], 3U);
}

}  // namespace
}  // namespace weir::core
