// An array of fixed size that begins as zeros, and costs nothing before it is used.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>

#include "core/refused_memory.hpp"
#include "core/resident_memory.hpp"

namespace weir::core {

template <class T>
class ZeroedArray {
    static_assert(std::is_trivially_copyable_v<T>, "all bytes 0 must be a value");

public:
    /// `touch`: its pages are made resident at once, rather than when they are used. Throws std::bad_alloc.
    ZeroedArray(std::size_t size, bool touch) : size_(size), items_(static_cast<T*>(std::calloc(size, sizeof(T)))) {
        if (items_ == nullptr) refuse_memory(size * sizeof(T));
        if (touch) core::touch(items_.get(), size * sizeof(T));
    }
    ZeroedArray(const ZeroedArray& other) : ZeroedArray(other.size_, false) {
        std::memcpy(items_.get(), other.items_.get(), size_ * sizeof(T));
    }
    ZeroedArray(ZeroedArray&&) noexcept = default;
    ZeroedArray& operator=(const ZeroedArray& other) {
        ZeroedArray copy(other);
        *this = std::move(copy);
        return *this;
    }
    ZeroedArray& operator=(ZeroedArray&&) noexcept = default;
    ~ZeroedArray() = default;

    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] T& operator[](std::size_t i) noexcept { return items_[i]; }
    [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return items_[i]; }

private:
    struct Freer {
        void operator()(void* memory) const noexcept { std::free(memory); }
    };
    std::size_t size_;
    std::unique_ptr<T[], Freer> items_;
};

}  // namespace weir::core
