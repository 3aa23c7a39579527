// The only edge between lcores: rte_ring behind a typed wrapper. Bounded; one producer and one consumer. Elements go
// through by value, a burst in one copy (DPDK's own functions copy them in units of four bytes). What does not fit
// stays with the producer, who counts it or waits.
#pragma once

#include <fmt/format.h>
#include <rte_errno.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>
#include <rte_ring_peek_zc.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "core/error.hpp"
#include "core/one_writer.hpp"
#include "core/units.hpp"

namespace weir::port {

template <class T>
class Ring {
    static constexpr unsigned element_bytes = sizeof(T);  // NOLINT(bugprone-sizeof-expression): pointers, too
    static_assert(std::is_trivially_copyable_v<T> && element_bytes % 4 == 0);

public:
    /// Holds `capacity` elements, in memory of this NUMA node if there is room (-1: any). `name` is at most 20
    /// characters and unique in the process. Throws core::RunError.
    Ring(const std::string& name, std::uint32_t capacity, int node = SOCKET_ID_ANY)
        : ring_(make(name, capacity, node)) {
        if (ring_ == nullptr && node != SOCKET_ID_ANY) ring_ = make(name, capacity, SOCKET_ID_ANY);
        if (ring_ == nullptr)
            throw core::RunError(
                fmt::format("no memory for ring '{}' of {} entries: {}", name, capacity, rte_strerror(rte_errno)));
    }
    ~Ring() { ::rte_ring_free(ring_); }
    Ring(const Ring&) = delete;
    Ring& operator=(const Ring&) = delete;

    /// Puts a prefix of `items` in and says how many.
    std::uint32_t push(std::span<const T> items) noexcept {
        if (items.empty()) return 0;
        rte_ring_zc_data room_for;
        unsigned left = 0;
        const std::uint32_t pushed = ::rte_ring_enqueue_zc_burst_elem_start(
            ring_, element_bytes, static_cast<unsigned>(items.size()), &room_for, &left);
        if (pushed > 0) {
            const std::uint32_t first = std::min(pushed, room_for.n1);
            std::memcpy(room_for.ptr1, items.data(), std::size_t{element_bytes} * first);
            if (pushed > first)
                std::memcpy(room_for.ptr2, items.data() + first, std::size_t{element_bytes} * (pushed - first));
            ::rte_ring_enqueue_zc_elem_finish(ring_, pushed);
        }
        if (const std::uint32_t used = ring_->capacity - left; used > highest_.load(std::memory_order_relaxed))
            highest_.store(used, std::memory_order_relaxed);
        if (pushed < items.size()) [[unlikely]]
            core::add(times_full_);
        return pushed;
    }
    bool push(const T& item) noexcept { return push(std::span<const T>(&item, 1)) == 1; }
    /// Takes up to `items.size()` out and says how many.
    std::uint32_t pop(std::span<T> items) noexcept {
        rte_ring_zc_data found;
        const std::uint32_t popped = ::rte_ring_dequeue_zc_burst_elem_start(
            ring_, element_bytes, static_cast<unsigned>(items.size()), &found, nullptr);
        if (popped == 0) return 0;
        const std::uint32_t first = std::min(popped, found.n1);
        std::memcpy(items.data(), found.ptr1, std::size_t{element_bytes} * first);
        if (popped > first)
            std::memcpy(items.data() + first, found.ptr2, std::size_t{element_bytes} * (popped - first));
        ::rte_ring_dequeue_zc_elem_finish(ring_, popped);
        return popped;
    }
    /// Takes elements out as long as `wanted` says so of the next one, up to `items.size()`, and says how many.
    template <class Wanted>
    std::uint32_t pop_while(std::span<T> items, Wanted&& wanted) noexcept {
        rte_ring_zc_data found;
        const std::uint32_t there = ::rte_ring_dequeue_zc_burst_elem_start(
            ring_, element_bytes, static_cast<unsigned>(items.size()), &found, nullptr);
        if (there == 0) return 0;
        std::uint32_t count = 0;
        for (; count < there; ++count) {
            const bool wrapped = count >= found.n1;
            const auto* const from = static_cast<const std::byte*>(wrapped ? found.ptr2 : found.ptr1);
            const std::uint32_t at = wrapped ? count - found.n1 : count;
            std::memcpy(&items[count], from + std::size_t{element_bytes} * at, element_bytes);
            if (!wanted(items[count])) break;
        }
        ::rte_ring_dequeue_zc_elem_finish(ring_, count);
        return count;
    }
    /// Elements in it; for any thread, approximate while producer and consumer work, never more than capacity().
    [[nodiscard]] std::uint32_t count() const noexcept {
        // As rte_ring_count, with loads that a thread outside may do.
        const std::uint32_t end = __atomic_load_n(&ring_->prod.tail, __ATOMIC_RELAXED);
        const std::uint32_t begin = __atomic_load_n(&ring_->cons.tail, __ATOMIC_RELAXED);
        const std::uint32_t count = (end - begin) & ring_->mask;
        return count > ring_->capacity ? ring_->capacity : count;
    }
    /// The producer gives up on so many that found no room.
    void count_dropped(std::uint64_t count) noexcept { core::add(dropped_, count); }
    // What the producer has seen, for any thread: the most elements right after a push, pushes that did not find room
    // for all they brought, and elements that were dropped for that.
    [[nodiscard]] std::uint32_t highest() const noexcept { return highest_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t times_full() const noexcept { return times_full_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint32_t capacity() const noexcept { return ring_->capacity; }
    [[nodiscard]] const char* name() const noexcept { return ring_->name; }
    [[nodiscard]] bool empty() const noexcept { return ::rte_ring_empty(ring_) != 0; }
    /// EAL memory that a ring of this capacity takes, for the sum that is made before EAL starts.
    [[nodiscard]] static std::uint64_t memory_bytes(std::uint32_t capacity) noexcept {
        std::uint64_t slots = 1;
        while (slots < std::uint64_t{capacity} + 1) slots *= 2;
        return slots * element_bytes + 1024;  // header, alignment and the heap's own element
    }

private:
    static rte_ring* make(const std::string& name, std::uint32_t capacity, int node) {
        return ::rte_ring_create_elem(name.c_str(), element_bytes, capacity, node,
                                      RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
    }

    rte_ring* ring_;
    // The producer writes these all the time, the consumer reads the line above at every pop.
    alignas(core::cache_line_bytes) std::atomic<std::uint32_t> highest_{0};
    std::atomic<std::uint64_t> times_full_{0};
    std::atomic<std::uint64_t> dropped_{0};
};

}  // namespace weir::port
