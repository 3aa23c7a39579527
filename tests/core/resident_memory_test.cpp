#include "core/resident_memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <vector>

namespace weir::core {
namespace {

constexpr std::size_t pages = 64;

/// Pages that are in memory, of anonymous memory that nobody has written to before.
class Pages {
public:
    Pages() : page_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))) {
        memory_ = ::mmap(nullptr, pages * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ::madvise(memory_, pages * page_, MADV_NOHUGEPAGE);
    }
    ~Pages() { ::munmap(memory_, pages * page_); }
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;
    [[nodiscard]] std::size_t resident() const {
        std::vector<unsigned char> in(pages);
        ::mincore(memory_, pages * page_, in.data());
        std::size_t count = 0;
        for (const unsigned char one : in) count += one & 1U;
        return count;
    }
    [[nodiscard]] char* at(std::size_t page) const { return static_cast<char*>(memory_) + page * page_; }
    [[nodiscard]] std::size_t page() const { return page_; }

private:
    std::size_t page_;
    void* memory_;
};

TEST(ResidentMemory, TouchingBringsInEveryPageOfTheRangeAndNoOther) {
    const Pages memory;
    ASSERT_EQ(memory.resident(), 0U);
    touch(memory.at(3) + 1, 2 * memory.page());  // parts of three pages
    EXPECT_EQ(memory.resident(), 3U);
    touch(memory.at(0), 0);
    EXPECT_EQ(memory.resident(), 3U);
    touch(memory.at(0), pages * memory.page());
    EXPECT_EQ(memory.resident(), pages);
}

TEST(ResidentMemory, TouchingChangesNothing) {
    const Pages memory;
    std::memset(memory.at(5), 0x5a, 100);
    touch(memory.at(0), pages * memory.page());
    EXPECT_EQ(std::string(memory.at(5), 100), std::string(100, 0x5a));
    EXPECT_EQ(*memory.at(6), 0);
}

}  // namespace
}  // namespace weir::core
