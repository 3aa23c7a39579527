// The numbers that messages open under in the first pass over a looped capture, of all sources together: the next pass
// goes on after them.
#pragma once

#include <cstdint>
#include <vector>

#include "assemble/number_memory.hpp"
#include "assemble/number_range.hpp"

namespace weir::assemble {

class PassNumbers {
public:
    /// `number_bits`: per source, how wide its numbers are. Without any nothing is followed.
    explicit PassNumbers(const std::vector<unsigned>& number_bits) {
        for (const unsigned bits : number_bits) sources_.push_back({bits});
    }

    /// A message of the source begins under this number.
    void add(std::uint32_t source, std::uint64_t number) noexcept {
        if (sources_.empty()) return;
        Source& from = sources_[source];
        if (!from.followed) {
            from.followed = true;
            if (!range_.empty()) from.turn = extend_number(number, range_.origin(), from.bits) - number;
        }
        range_.add(number + from.turn);
    }
    /// The pass is over.
    void end() noexcept { sources_.clear(); }
    [[nodiscard]] const NumberRange& range() const noexcept { return range_; }

private:
    struct Source {
        unsigned bits = 64;
        bool followed = false;   ///< turn is known
        std::uint64_t turn = 0;  ///< in range_: makes the narrow counter meet those of other sources
    };
    std::vector<Source> sources_;
    NumberRange range_;
};

}  // namespace weir::assemble
