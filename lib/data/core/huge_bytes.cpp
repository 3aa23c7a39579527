#include "core/huge_bytes.hpp"

#include <sys/mman.h>

#include <cstring>
#include <utility>

#include "core/refused_memory.hpp"

namespace weir::core {

HugeBytes::HugeBytes(std::size_t bytes) : bytes_(bytes) {
    constexpr std::size_t huge = std::size_t{2} << 20;
    mapped_ = (bytes + huge - 1) / huge * huge;
    constexpr int protection = PROT_READ | PROT_WRITE;
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    void* memory = ::mmap(nullptr, mapped_, protection, flags | MAP_HUGETLB | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) {
        memory = ::mmap(nullptr, mapped_, protection, flags, -1, 0);
        if (memory == MAP_FAILED) refuse_memory(mapped_);
        static_cast<void>(::madvise(memory, mapped_, MADV_HUGEPAGE));  // not there in every kernel
        std::memset(memory, 0, bytes);
    }
    memory_ = static_cast<std::byte*>(memory);
}

HugeBytes::~HugeBytes() {
    if (memory_ != nullptr) ::munmap(memory_, mapped_);
}

HugeBytes::HugeBytes(HugeBytes&& other) noexcept {
    *this = std::move(other);
}

HugeBytes& HugeBytes::operator=(HugeBytes&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    std::swap(mapped_, other.mapped_);
    return *this;
}

}  // namespace weir::core
