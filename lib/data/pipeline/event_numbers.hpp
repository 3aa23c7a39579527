// The event numbers of a run: from the builders' logs into one account for each epoch, on the control thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "assemble/number_account.hpp"
#include "assemble/number_log.hpp"
#include "pipeline/settled_numbers.hpp"

namespace weir::pipeline {

class EventNumbers {
public:
    static constexpr std::size_t epochs_max = 4096;

    /// What became of the numbers of a whole run.
    struct Summary {
        using Counting = assemble::NumberAccount::Counting;
        std::vector<assemble::NumberAccount::Result> epochs;
        /// Numbers that could not be followed: the control thread was away for too long, or there are too many epochs.
        std::uint64_t unlogged = 0;

        [[nodiscard]] std::uint64_t seen() const;
        /// Exact where all() are counted.
        [[nodiscard]] std::uint64_t missing() const;
        [[nodiscard]] std::uint64_t jumps() const;
        /// The counter leaves numbers of its field out where it begins again; nothing: not as far as was seen.
        [[nodiscard]] std::optional<assemble::NumberAccount::Result::Wrap> wrap() const;
        [[nodiscard]] std::uint64_t odd() const;
        /// Every epoch has numbers with a stride, or one number.
        [[nodiscard]] bool counted() const;
        /// Of the epochs; nothing if none shows one, or they differ.
        [[nodiscard]] std::optional<std::uint64_t> stride() const;
    };

    /// `wait_ns`: as SettledNumbers has it.
    EventNumbers(std::size_t builders, core::TimeNs wait_ns);

    [[nodiscard]] assemble::NumberLog* log(std::size_t builder) noexcept { return logs_[builder].get(); }
    /// Takes what the builders have logged; on the control thread, many times a second.
    void look(core::TimeNs now);
    /// `declared`: the stride, where it is known; `passes`: of a looped capture, each of which may begin off the
    /// stride.
    /// `turn`: numbers that the counter's field has; 0: it does not begin again, or is known to have all of them.
    [[nodiscard]] Summary summary(std::optional<std::uint64_t> declared, std::uint32_t passes,
                                  std::uint64_t turn) const;
    /// The same of the numbers that are settled, while the run goes on; nothing: none is.
    [[nodiscard]] std::optional<Summary> settled(std::optional<std::uint64_t> declared, std::uint64_t turn) const;

private:
    [[nodiscard]] std::uint64_t unlogged() const;

    static constexpr std::uint32_t log_entries = 1U << 14U;
    std::vector<std::unique_ptr<assemble::NumberLog>> logs_;
    std::map<std::uint32_t, assemble::NumberAccount> epochs_;
    std::uint64_t left_out_ = 0;
    SettledNumbers settled_;
};

}  // namespace weir::pipeline
