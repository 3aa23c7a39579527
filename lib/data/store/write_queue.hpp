// Writes to files that are under way at the same time: by io_uring where the kernel has it, else one after the other.
// For one ordinary thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "store/file.hpp"

struct io_uring;

namespace weir::store {

class WriteQueue {
public:
    /// What became of one write; outlives it.
    struct Ticket {
        bool pending = false;
        int error_number = 0;  ///< 0: all of it is with the kernel (with O_DIRECT: on the device)
    };
    /// Tests see every completion of io_uring, and may put another result in its place: an error as a negative number,
    /// or less than what was written.
    using Tamper = std::function<int(std::uint64_t offset, std::size_t bytes, int result)>;

    /// Every write is done when write() returns.
    WriteQueue();
    /// With io_uring, `depth` writes at once; throws core::RunError with the system's reason if there is none.
    explicit WriteQueue(std::uint32_t depth, Tamper tamper = {});
    ~WriteQueue();
    WriteQueue(WriteQueue&& other) noexcept;
    WriteQueue& operator=(WriteQueue&& other) noexcept;

    [[nodiscard]] bool is_asynchronous() const noexcept { return ring_ != nullptr; }
    /// Begins to write `bytes`, which stay as they are until the ticket is not pending any more, and waits while
    /// `depth` writes are under way. Without io_uring it throws what File::write_at throws.
    void write(File& file, std::uint64_t offset, std::span<const std::byte> bytes, Ticket& ticket);
    /// Takes note of what is finished; `wait`: until something is, unless nothing is under way. Short writes and
    /// interrupted ones are begun again here.
    void reap(bool wait);
    /// Waits for all.
    void drain();
    [[nodiscard]] std::uint32_t under_way() const noexcept { return under_way_; }

private:
    struct Write {
        int fd = -1;
        std::uint64_t offset = 0;
        std::span<const std::byte> rest;
        Ticket* ticket = nullptr;
        bool direct = false;
        int stalls = 0;  ///< completions in a row that brought nothing
    };
    void submit(Write& write);
    [[nodiscard]] int submit_entries();
    void finish(Write& write, int result);

    std::unique_ptr<::io_uring> ring_;
    std::vector<Write> writes_;
    std::vector<Write*> idle_;
    std::uint32_t under_way_ = 0;
    Tamper tamper_;
};

}  // namespace weir::store
