// Full segments that are yet to be synced. Their files stay open: the kernel may forget an error of writing back that
// nobody has seen together with a file that nobody has open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "store/event_sink.hpp"
#include "store/file.hpp"
#include "store/run_lane.hpp"

namespace weir::store {

class UnsyncedSegments {
public:
    struct Segment {
        std::uint32_t number = 0;
        SegmentSize size;
        SegmentSize on_device;
        File file;
    };

    void add(Segment segment) { segments_.push_back(std::move(segment)); }
    [[nodiscard]] std::size_t size() const noexcept { return segments_.size(); }
    /// There must be one.
    [[nodiscard]] std::uint32_t oldest() const noexcept { return segments_.front().number; }
    /// Throws core::RunError if that fails; the segment is then set aside. It is not here any more either way.
    void sync_oldest(EventSink::Stats& stats);

    /// The segment could not be synced.
    [[nodiscard]] bool is_set_aside(std::uint32_t number) const noexcept;
    [[nodiscard]] bool any_set_aside() const noexcept { return !set_aside_.empty(); }
    /// Which ones, for people.
    [[nodiscard]] std::string set_aside_text() const;

private:
    struct SetAside {
        std::uint32_t number = 0;
        std::uint64_t events = 0;
        bool renamed = false;
    };
    void set_aside(const Segment& segment) noexcept;

    std::deque<Segment> segments_;  ///< by number
    std::vector<SetAside> set_aside_;
};

}  // namespace weir::store
