// Threads that do one thing together, a slice each: the caller takes the first slice and waits for the others. For work
// of a millisecond and more; between two calls the threads sleep.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace weir::core {

class SliceThreads {
public:
    /// `count` slices, at least 1: starts one thread less. Throws std::system_error where there is no room for one.
    explicit SliceThreads(std::uint32_t count);
    ~SliceThreads();
    SliceThreads(const SliceThreads&) = delete;
    SliceThreads& operator=(const SliceThreads&) = delete;

    /// Calls work(slice) once for each slice, all at the same time, and returns when all have returned. `work` does not
    /// throw. From one thread at a time.
    void run(const std::function<void(std::uint32_t slice)>& work) noexcept;
    [[nodiscard]] std::uint32_t count() const noexcept { return static_cast<std::uint32_t>(threads_.size()) + 1; }

private:
    void serve(std::uint32_t slice) noexcept;
    void stop() noexcept;

    std::vector<std::thread> threads_;
    const std::function<void(std::uint32_t)>* work_ = nullptr;  ///< null: the threads end
    std::atomic<std::uint32_t> round_{0};                       ///< counts calls of run()
    std::atomic<std::uint32_t> busy_{0};                        ///< threads that have not returned from this round's
};

}  // namespace weir::core
