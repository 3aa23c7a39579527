// The event numbers of one source: as wide as they are on the wire, and as numbers of 64 bits that never repeat.
#pragma once

#include <cstdint>

#include "assemble/number_memory.hpp"

namespace weir::assemble {

class SourceNumbers {
public:
    /// `bits`: how wide they are on the wire.
    explicit SourceNumbers(unsigned bits) noexcept : bits_(bits), extension_(bits) {}

    /// What a number on the wire stands for depends on those before it.
    [[nodiscard]] bool are_narrow() const noexcept { return bits_ < 64; }
    /// What a packet says, as a number of 64 bits.
    [[nodiscard]] std::uint64_t number_of(std::uint64_t carried) noexcept {
        return extension_.extend(carried) + shift_;
    }
    /// The same, for a packet of which nothing is known yet: it changes nothing.
    [[nodiscard]] std::uint64_t guess_of(std::uint64_t carried) const noexcept {
        return extension_.guess(carried) + shift_;
    }
    /// A message begins under this number.
    void opened(std::uint64_t number) noexcept {
        extension_.opened(number - shift_);
        newest_ = number;
    }
    /// The number that opened last.
    [[nodiscard]] std::uint64_t newest() const noexcept { return newest_; }
    /// The source has begun again, and has come to this number.
    void restart(std::uint64_t number) noexcept {
        extension_.restart(number - shift_);
        newest_ = number;
    }
    /// The same packets come once more; their numbers are moved up by `shift`.
    void begin_pass(std::uint64_t shift) noexcept {
        extension_ = NumberExtension(bits_);
        shift_ = shift;
    }

private:
    unsigned bits_;
    NumberExtension extension_;
    std::uint64_t shift_ = 0;  ///< what this pass over a capture adds to them
    std::uint64_t newest_ = 0;
};

}  // namespace weir::assemble
