// The records of one or more captures in the order of their stamps, and the time at which they are to be: once, or pass
// after pass.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "stages/time_bound.hpp"
#include "store/capture/reader.hpp"

namespace weir::stages {

class CaptureSource {
public:
    struct Config {
        std::vector<std::string> files;
        std::optional<TimeBound> from;  ///< records with earlier stamps are skipped
        std::optional<TimeBound> to;    ///< records from this stamp on are skipped
    };
    struct Item {
        /// Valid until the next call of next(). Null: one was skipped; whoever may be told to stop can look up between.
        const store::CaptureRecord* record = nullptr;
        std::size_t file = 0;      ///< its place in Config::files
        core::TimeNs time_ns = 0;  ///< never running backwards, also from pass to pass
    };

    /// Opens the files: throws core::RunError. With a `lender`, which must outlive this, records are read into its
    /// blocks.
    explicit CaptureSource(const Config& config, store::BlockLender* lender = nullptr);

    /// The next record, or false at the end of the pass. Files that cannot be read any further have ended: warnings().
    bool next(Item& out) noexcept;
    /// Opens the files once more: their first record is due one mean distance after the last one. False if there is
    /// nothing to repeat, or it cannot be read again.
    [[nodiscard]] bool next_pass();

    /// Of the first record that was not skipped.
    [[nodiscard]] core::TimeNs first_ns() const noexcept { return first_ns_; }
    /// Records outside of the range of time that was asked for; for any thread.
    [[nodiscard]] std::uint64_t skipped() const noexcept { return skipped_.load(std::memory_order_relaxed); }
    /// The furthest that a stamp was before one that came earlier in its file; for any thread.
    [[nodiscard]] core::TimeNs ran_back_ns() const noexcept { return ran_back_ns_.load(std::memory_order_relaxed); }
    /// How often the files have been read, the one under way included.
    [[nodiscard]] std::uint32_t passes() const noexcept { return passes_; }
    /// Packets of interfaces that are not read; for any thread.
    [[nodiscard]] std::uint64_t other_link() const noexcept { return other_link_.load(std::memory_order_relaxed); }
    /// From when on something is missing because a file could not be read any further; core::never: nothing is. For any
    /// thread, which sees it before what the other files have after that time.
    [[nodiscard]] const std::atomic<core::TimeNs>& cut_ns() const noexcept { return cut_ns_; }
    /// Sentences about what could not be read of the files.
    [[nodiscard]] std::vector<std::string> unread() const;
    /// These, and others about what is in them.
    [[nodiscard]] std::vector<std::string> warnings() const;

private:
    struct File {
        store::CaptureReader reader;
        store::CaptureRecord record;
        bool has_record = false;
        std::uint64_t other_link = 0;  ///< of its packets, those that are counted
    };
    void read(File& file) noexcept;
    [[nodiscard]] File* earliest() noexcept;
    void read_first() noexcept;
    void set_range() noexcept;

    Config config_;
    store::BlockLender* lender_;
    std::vector<File> files_;
    File* given_ = nullptr;  ///< whose record was given out last
    bool begun_ = false;     ///< the first records have been read
    core::TimeNs from_ns_ = std::numeric_limits<core::TimeNs>::min();
    core::TimeNs to_ns_ = core::never;
    core::TimeNs first_ns_ = 0;
    core::TimeNs time_ns_ = std::numeric_limits<core::TimeNs>::min();
    core::TimeNs shift_ns_ = 0;           ///< between the stamps of the files and the time of this pass
    std::uint64_t records_ = 0;           ///< of all passes, without those skipped
    std::uint64_t records_per_pass_ = 0;  ///< of the first pass, once it is over
    std::atomic<std::uint64_t> skipped_{0};
    std::atomic<std::uint64_t> other_link_{0};
    std::atomic<core::TimeNs> cut_ns_{core::never};
    std::atomic<core::TimeNs> ran_back_ns_{0};
    std::uint32_t passes_ = 1;
    std::vector<std::string> unread_;  ///< of passes that are over
    std::vector<std::string> warnings_;
};

}  // namespace weir::stages
