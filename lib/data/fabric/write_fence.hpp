// How a builder learns that what it had put into the pipeline is written: an event leaves the pipeline into a buffer of
// output, and counts as written when the sinks have done with that.
#pragma once

#include <cstdint>
#include <vector>

namespace weir::fabric {

class WriteFence {
public:
    WriteFence() = default;
    WriteFence(const WriteFence&) = delete;
    WriteFence& operator=(const WriteFence&) = delete;
    virtual ~WriteFence() = default;
    /// Where the output stands now. Any thread.
    virtual void mark(std::vector<std::uint64_t>& place) const = 0;
    /// All that had left the pipeline by then is written; or it is lost, and whoever asks the sinks next hears of that.
    [[nodiscard]] virtual bool has_passed(const std::vector<std::uint64_t>& place) const = 0;
};

}  // namespace weir::fabric
