// What PSN arithmetic proves of a message that ends without all of its packets: which runs are its own, where it starts
// and where it ends. Nothing is guessed, and nothing is changed.
#pragma once

#include <cstdint>
#include <vector>

#include "roce/listener/connections.hpp"
#include "roce/listener/runs.hpp"

namespace weir::roce {

/// What is proven of a message that ends incomplete; its runs are in GroupFinder::members.
struct Group {
    Psn start = 0;
    Psn end = 0;
    bool start_known = false;
    bool end_known = false;
    bool contradiction = false;
    bool continues_closed = false;  ///< it goes on with a message that has ended before
    std::uint32_t head = no_run;    ///< the run with FIRST
    std::uint32_t tail = no_run;    ///< the run with LAST
    std::uint32_t pmtu = 0;
    bool is_write = false;
};

class GroupFinder {
public:
    static constexpr std::uint64_t unknown = ~std::uint64_t{0};

    GroupFinder(const Runs& runs, std::uint32_t runs_max) : runs_(runs) { members_.reserve(runs_max); }

    /// The message that a run belongs to, which is not complete.
    [[nodiscard]] Group gather(const Connection& connection, std::uint32_t run) noexcept;
    /// Its runs, the one that was asked for first. Until the next gather.
    [[nodiscard]] const std::vector<std::uint32_t>& members() const noexcept { return members_; }
    /// Bytes of the message, or `unknown`.
    [[nodiscard]] std::uint64_t total(const Connection& connection, const Group& group) const noexcept;

private:
    void gather_left(const Connection& connection, std::uint32_t run, Group& group) noexcept;
    void gather_right(const Connection& connection, std::uint32_t run, Group& group) noexcept;
    void gather_extent(const Connection& connection, Group& group) noexcept;
    [[nodiscard]] std::uint64_t extent(const Connection& connection, const Group& group) const noexcept;
    [[nodiscard]] Psn end_of_write(const Connection& connection, std::uint32_t run, Psn limit) const noexcept;
    [[nodiscard]] bool place_by_count(const Connection& connection, Group& group) noexcept;

    const Runs& runs_;
    std::vector<std::uint32_t> members_;
};

}  // namespace weir::roce
