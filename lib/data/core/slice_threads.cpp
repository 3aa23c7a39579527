#include "core/slice_threads.hpp"

namespace weir::core {

SliceThreads::SliceThreads(std::uint32_t count) {
    try {
        for (std::uint32_t slice = 1; slice < count; ++slice) threads_.emplace_back([this, slice] { serve(slice); });
    } catch (...) {
        stop();
        throw;
    }
}

SliceThreads::~SliceThreads() {
    stop();
}

void SliceThreads::stop() noexcept {
    work_ = nullptr;
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
}

void SliceThreads::run(const std::function<void(std::uint32_t)>& work) noexcept {
    work_ = &work;
    busy_.store(static_cast<std::uint32_t>(threads_.size()), std::memory_order_relaxed);
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
    work(0);
    for (std::uint32_t busy = busy_.load(std::memory_order_acquire); busy != 0;
         busy = busy_.load(std::memory_order_acquire))
        busy_.wait(busy, std::memory_order_acquire);
}

void SliceThreads::serve(std::uint32_t slice) noexcept {
    for (std::uint32_t round = 0;; ++round) {
        round_.wait(round, std::memory_order_acquire);
        if (work_ == nullptr) return;
        (*work_)(slice);
        if (busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) busy_.notify_one();
    }
}

}  // namespace weir::core
