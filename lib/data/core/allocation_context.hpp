// What a thread is busy with, in words, so that an allocation that fails can be named: a std::bad_alloc says nothing.
#pragma once

namespace weir::core {

/// As long as it lives, on the thread that made it; one inside another counts.
class AllocationContext {
public:
    /// `what`: a literal that goes on from "out of memory for", such as "the index of a run".
    explicit AllocationContext(const char* what) noexcept : before_(now_) { now_ = what; }
    ~AllocationContext() { now_ = before_; }
    AllocationContext(const AllocationContext&) = delete;
    AllocationContext& operator=(const AllocationContext&) = delete;
    /// Null: nobody said.
    [[nodiscard]] static const char* now() noexcept { return now_; }

private:
    inline static thread_local constinit const char* now_ = nullptr;
    const char* before_;
};

}  // namespace weir::core
