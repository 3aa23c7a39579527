// Allocates in the named way; hot unless told "cold". The malloc trap's test expects it to be aborted, or not.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>
#include <thread>

#include "core/hot_thread.hpp"

namespace {

void* volatile kept = nullptr;  // keeps the compiler from removing the pair

void allocate(std::string_view how, void* spare) {
    if (how == "malloc") kept = std::malloc(100);
    if (how == "calloc") kept = std::calloc(10, 10);
    if (how == "realloc") kept = std::realloc(spare, 5000);
    if (how == "free") std::free(spare);
    if (how == "new") kept = ::operator new(100);
    if (how == "new_aligned") kept = ::operator new (128, std::align_val_t{64});
    if (how == "aligned_alloc") kept = std::aligned_alloc(64, 128);
    if (how == "posix_memalign") {
        void* memory = nullptr;
        if (::posix_memalign(&memory, 64, 128) == 0) kept = memory;
    }
    if (how == "nothing") kept = spare;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    const std::string_view how = argv[1];
    void* spare = std::malloc(100);
    const std::string_view heat = argv[2];
    if (heat == "other") {
        // Only the thread that declared itself hot is bound by it.
        weir::core::hot_thread(true);
        weir::core::hot_thread(false);
        std::thread other([&] { allocate(how, spare); });
        other.join();
    } else {
        weir::core::hot_thread(heat == "hot");
        allocate(how, spare);
        weir::core::hot_thread(false);
    }
    std::puts("survived");
    return 0;
}
