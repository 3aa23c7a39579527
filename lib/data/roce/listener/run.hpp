// A run: packets with consecutive PSNs that are known to belong to one message. Runs live in one array and are linked
// by index into lists by age, one of all runs and one per connection.
#pragma once

#include <cstdint>
#include <vector>

#include "assemble/message.hpp"
#include "roce/listener/psn_ring.hpp"
#include "wire/roce.hpp"

namespace weir::roce {

inline constexpr std::uint32_t no_run = 0xffffffff;

struct RunLinks {
    std::uint32_t previous = no_run;
    std::uint32_t next = no_run;
};

struct Run {
    assemble::Message* message = nullptr;  ///< nullptr: this slot is free
    Psn begin = 0;
    Psn end = 0;  ///< one after the last
    std::uint32_t connection = 0;
    std::uint32_t pmtu = 0;        ///< payload of FIRST and MIDDLE packets; 0 while there is only a LAST
    std::uint32_t last_bytes = 0;  ///< payload of LAST, or ONLY
    std::uint32_t dma_length = 0;  ///< WRITE with FIRST
    std::uint32_t immediate = 0;
    bool has_first = false;  ///< starts with FIRST or ONLY; then, and only then, its references have their final offset
    bool has_last = false;   ///< ends with LAST or ONLY
    bool is_write = false;
    bool has_immediate = false;
    core::TimeNs first_ns = 0;
    std::uint64_t opened = 0;       ///< order of opening over all sources
    std::uint64_t ends_before = 0;  ///< message ends that its connection had shown when it was opened
    RunLinks by_age;
    RunLinks of_connection;

    /// It ends with this packet.
    void set_last(const wire::RocePacket& packet) noexcept {
        has_last = true;
        last_bytes = packet.bytes;
        has_immediate = packet.has_immediate;
        immediate = packet.immediate;
    }
    [[nodiscard]] bool complete() const noexcept { return has_first && has_last; }
    /// Bytes of the message, if complete.
    [[nodiscard]] std::uint64_t bytes() const noexcept {
        return static_cast<std::uint64_t>(end - begin - 1) * pmtu + last_bytes;
    }
};

/// Runs in the order in which they were opened.
template <RunLinks Run::*links>
class RunList {
public:
    [[nodiscard]] std::uint32_t first() const noexcept { return first_; }
    void push_back(std::vector<Run>& runs, std::uint32_t run) noexcept {
        (runs[run].*links) = {last_, no_run};
        (last_ != no_run ? (runs[last_].*links).next : first_) = run;
        last_ = run;
    }
    void remove(std::vector<Run>& runs, std::uint32_t run) noexcept {
        const RunLinks at = runs[run].*links;
        (at.previous != no_run ? (runs[at.previous].*links).next : first_) = at.next;
        (at.next != no_run ? (runs[at.next].*links).previous : last_) = at.previous;
    }

private:
    std::uint32_t first_ = no_run;
    std::uint32_t last_ = no_run;
};

}  // namespace weir::roce
