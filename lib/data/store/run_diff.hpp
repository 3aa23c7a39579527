// Which events of two runs differ, and how. Whatever order the events lie in, and however they are compressed: they are
// found by epoch and number, and compared decoded. Memory: 64 bytes per event, and two events with their payload.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "store/event_diff.hpp"
#include "store/run_reader.hpp"

namespace weir::store {

class RunDiff {
public:
    struct Config {
        bool times = false;                                ///< when packets came is compared too
        double tolerance = 0;                              ///< pixels that differ by no more are the same
        std::uint64_t bytes_max = std::uint64_t{2} << 30;  ///< payload of an event
    };
    struct Totals {
        std::uint64_t compared = 0;  ///< events that both have
        std::uint64_t same = 0;      ///< of them
        std::uint64_t differ = 0;    ///< of them, those that cannot be read included
        std::uint64_t unreadable = 0;
        std::uint64_t only_first = 0;
        std::uint64_t only_second = 0;
        std::uint64_t copies = 0;  ///< left out: see RunReader::entries()

        [[nodiscard]] bool all_same() const noexcept { return differ == 0 && only_first == 0 && only_second == 0; }
    };
    /// Called for events that differ, in the order of epoch and number. A text in `changes` under "unreadable" says why
    /// an event could not be compared.
    using Sink = std::function<void(const EventDifference&)>;
    using Progress = std::function<void(std::uint64_t done, std::uint64_t of)>;

    /// Both must outlive this.
    RunDiff(const RunReader& first, const RunReader& second, const Config& config);

    /// What the runs say of themselves, as far as it bears on their events: streams, events, reducers, payload; each
    /// value that differs, by its JSON pointer. No difference of events by itself.
    [[nodiscard]] std::vector<std::pair<std::string, Change>> description() const;
    /// Both runs keep pixels, so that a tolerance means something.
    [[nodiscard]] bool has_pixels() const noexcept;

    Totals compare(const Sink& sink, const Progress& progress) const;

private:
    [[nodiscard]] EventDifference compare_pair(const IndexEntry& a, const IndexEntry& b) const;

    const RunReader& first_;
    const RunReader& second_;
    Config config_;
    DiffRules rules_;
};

}  // namespace weir::store
