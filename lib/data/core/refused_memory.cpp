#include "core/refused_memory.hpp"

#include <atomic>
#include <new>

#include "core/allocation_context.hpp"

namespace weir::core {
namespace {

std::atomic<std::size_t> refused_bytes{0};
std::atomic<const char*> refused_what{nullptr};

}  // namespace

void refuse_memory(std::size_t bytes) {
    refused_bytes.store(bytes);
    refused_what.store(AllocationContext::now());
    throw std::bad_alloc();
}

RefusedMemory refused_memory() noexcept {
    return {refused_bytes.load(), refused_what.load()};
}

}  // namespace weir::core
