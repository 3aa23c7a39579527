// Writes that are under way at the same time. See write_queue.hpp.
#include "store/write_queue.hpp"

#include <fmt/core.h>
#include <liburing.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.hpp"

namespace weir::store {

namespace {

[[noreturn]] void throw_refused(int error_number) {
    throw core::RunError(fmt::format("io_uring is refused: {}", std::strerror(error_number)));
}

/// A write that keeps bringing nothing is given up after so many times: a full disk that does not say so.
constexpr int stalls_max = 8;

}  // namespace

WriteQueue::WriteQueue() = default;

WriteQueue::WriteQueue(std::uint32_t depth, Tamper tamper)
    : ring_(std::make_unique<::io_uring>()), tamper_(std::move(tamper)) {
    if (const int rc = ::io_uring_queue_init(depth, ring_.get(), 0); rc < 0) {
        ring_.reset();
        throw_refused(-rc);
    }
    // Before 5.6 there is a ring without IORING_OP_WRITE.
    ::io_uring_probe* const probe = ::io_uring_get_probe_ring(ring_.get());
    const bool can_write = probe != nullptr && ::io_uring_opcode_supported(probe, IORING_OP_WRITE) != 0;
    ::io_uring_free_probe(probe);
    if (!can_write) {
        ::io_uring_queue_exit(ring_.get());
        ring_.reset();
        throw_refused(EOPNOTSUPP);
    }
    writes_.resize(depth);
    for (Write& write : writes_) idle_.push_back(&write);
}

WriteQueue::~WriteQueue() {
    if (ring_ == nullptr) return;
    try {
        drain();  // the kernel reads memory that is about to go
    } catch (const std::exception&) {
        // closing the ring cancels what is left
    }
    ::io_uring_queue_exit(ring_.get());
}

WriteQueue::WriteQueue(WriteQueue&& other) noexcept : WriteQueue() {
    *this = std::move(other);
}

WriteQueue& WriteQueue::operator=(WriteQueue&& other) noexcept {
    std::swap(ring_, other.ring_);
    std::swap(writes_, other.writes_);
    std::swap(idle_, other.idle_);
    std::swap(under_way_, other.under_way_);
    std::swap(tamper_, other.tamper_);
    return *this;
}

void WriteQueue::write(File& file, std::uint64_t offset, std::span<const std::byte> bytes, Ticket& ticket) {
    ticket = {};
    if (ring_ == nullptr) {
        file.write_at(offset, bytes);
        return;
    }
    while (idle_.empty()) reap(true);
    Write& write = *idle_.back();
    idle_.pop_back();
    write = {file.descriptor(), offset, bytes, &ticket, file.is_direct(), 0};
    ticket.pending = true;
    ++under_way_;
    submit(write);
}

void WriteQueue::submit(Write& write) {
    // The kernel takes every entry at once, so there is room for this one, unless it refused some before.
    ::io_uring_sqe* entry = ::io_uring_get_sqe(ring_.get());
    if (entry == nullptr && submit_entries() == 0) entry = ::io_uring_get_sqe(ring_.get());
    int rc = -EBUSY;
    if (entry != nullptr) {
        const std::size_t bytes = std::min<std::size_t>(write.rest.size(), std::size_t{1} << 30);
        ::io_uring_prep_write(entry, write.fd, write.rest.data(), static_cast<unsigned>(bytes), write.offset);
        ::io_uring_sqe_set_data(entry, &write);
        rc = submit_entries();
        if (rc == 0) return;
        // A refused entry stays in the queue, and goes to the kernel with a later one. It must not write then, and its
        // completion must not pass for that of whatever write has this place by then.
        ::io_uring_prep_nop(entry);
        ::io_uring_sqe_set_data(entry, nullptr);
    }
    write.stalls = stalls_max;
    finish(write, rc);
}

/// 0, or the system's error as a negative number: then the last entry is still in the queue.
int WriteQueue::submit_entries() {
    while (::io_uring_sq_ready(ring_.get()) > 0) {
        const int rc = ::io_uring_submit(ring_.get());
        // Short of memory or of room for completions: those under way make room.
        if (rc < 0 && rc != -EINTR && rc != -EAGAIN && rc != -EBUSY) return rc;
    }
    return 0;
}

void WriteQueue::finish(Write& write, int result) {
    if (tamper_) result = tamper_(write.offset, write.rest.size(), result);
    std::size_t done = result > 0 ? std::min(static_cast<std::size_t>(result), write.rest.size()) : 0;
    // A direct write goes on where the last whole unit of the disk ended.
    if (write.direct && done < write.rest.size()) done -= done % File::direct_alignment;
    write.rest = write.rest.subspan(done);
    write.offset += done;
    write.stalls = done > 0 ? 0 : write.stalls + 1;
    const bool again = result >= 0 || result == -EINTR || result == -EAGAIN;
    if (!write.rest.empty() && again && write.stalls < stalls_max) return submit(write);
    // Not an error by the letter, but nothing says that another try would do better.
    if (!write.rest.empty()) write.ticket->error_number = result < 0 ? -result : ENOSPC;
    write.ticket->pending = false;
    --under_way_;
    idle_.push_back(&write);
}

void WriteQueue::reap(bool wait) {
    if (ring_ == nullptr || under_way_ == 0) return;
    ::io_uring_cqe* completion = nullptr;
    int rc = -EINTR;
    while (rc == -EINTR)
        rc = wait ? ::io_uring_wait_cqe(ring_.get(), &completion) : ::io_uring_peek_cqe(ring_.get(), &completion);
    if (rc == -EAGAIN) return;
    if (rc < 0) throw_refused(-rc);
    do {
        auto* const write = static_cast<Write*>(::io_uring_cqe_get_data(completion));
        const int result = completion->res;
        ::io_uring_cqe_seen(ring_.get(), completion);
        if (write != nullptr) finish(*write, result);  // null: an entry that was refused
    } while (::io_uring_peek_cqe(ring_.get(), &completion) == 0);
}

void WriteQueue::drain() {
    while (under_way_ > 0) reap(true);
}

}  // namespace weir::store
