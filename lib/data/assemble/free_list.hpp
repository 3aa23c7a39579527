// Objects that wait to be used again, chained through their own `next`. One thread uses it.
#pragma once

namespace weir::assemble {

/// The last one that came back is the first to be taken, while it is still in the cache.
template <class T>
class FreeList {
public:
    [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
    void push(T& object) noexcept {
        object.next = first_;
        first_ = &object;
    }
    /// nullptr: there is none. The `next` of what is taken means nothing any more.
    [[nodiscard]] T* pop() noexcept {
        T* object = first_;
        if (object != nullptr) first_ = object->next;
        return object;
    }

private:
    T* first_ = nullptr;
};

}  // namespace weir::assemble
