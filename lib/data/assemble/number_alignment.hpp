// Makes the numbers of sources meet. Each source extends its own narrow counter from where it was first seen, so two
// that start on either side of a wrap differ by one turn of the counter. What to add to a source's numbers is found out
// once per epoch, when two of its numbers ask for the same: a single wild number decides nothing.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "assemble/number_memory.hpp"

namespace weir::assemble {

class NumberAlignment {
public:
    NumberAlignment(std::uint32_t sources, std::vector<std::uint8_t> number_bits)
        : bits_(std::move(number_bits)), sources_(sources) {
        bits_.resize(sources, 64);
    }

    /// The common number for a source's own `number` in `epoch`.
    [[nodiscard]] std::uint64_t to_common(std::uint32_t source, std::uint32_t epoch, std::uint64_t number) noexcept {
        if (bits_[source] >= 64) return number;
        Source& from = sources_[source];
        if (!from.known || from.epoch != epoch) {
            from = {};
            from.known = true;
            from.epoch = epoch;
        }
        for (std::uint32_t i = 0; i < from.count; ++i)
            if (from.early[i].number == number) return number + from.early[i].offset;
        if (!from.decided)
            decide(from, number, extend_number(number, reference(epoch, number), bits_[source]) - number);
        return number + (from.decided ? from.offset : from.early[from.count - 1].offset);
    }
    /// The source's own number for a common one.
    [[nodiscard]] std::uint64_t to_own(std::uint32_t source, std::uint32_t epoch, std::uint64_t number) const noexcept {
        const Source& from = sources_[source];
        if (bits_[source] >= 64 || !from.known || from.epoch != epoch) return number;
        for (std::uint32_t i = 0; i < from.count; ++i)
            if (from.early[i].number + from.early[i].offset == number) return from.early[i].number;
        return number - from.offset;
    }
    /// The source has nothing more to say about this number of its own.
    void forget(std::uint32_t source, std::uint64_t number) noexcept {
        Source& from = sources_[source];
        if (!from.decided) return;
        for (std::uint32_t i = 0; i < from.count; ++i)
            if (from.early[i].number == number) from.early[i--] = from.early[--from.count];
    }
    /// An event opened under this (common) number.
    void opened(std::uint32_t epoch, std::uint64_t number) noexcept {
        Recent& recent = recent_of(epoch);
        recent.numbers[recent.count++ % recent.numbers.size()] = number;
    }
    /// Where the epoch is, once three events have opened in it: no single wild number says so. 0 before.
    [[nodiscard]] std::uint64_t middle(std::uint32_t epoch) noexcept {
        return recent_of(epoch).count < 3 ? 0 : reference(epoch, 0);
    }
    [[nodiscard]] std::uint32_t opened_in(std::uint32_t epoch) noexcept { return recent_of(epoch).count; }

private:
    struct Early {
        std::uint64_t number = 0;
        std::uint64_t offset = 0;
    };
    struct Source {
        std::uint64_t offset = 0;
        std::uint32_t epoch = 0;
        bool known = false;
        bool decided = false;
        std::uint32_t count = 0;
        std::array<Early, 4> early;  ///< before it was decided, and for as long as they differ
    };
    struct Recent {  ///< the last numbers that opened an event
        std::uint32_t epoch = 0;
        std::uint32_t count = 0;
        std::array<std::uint64_t, 3> numbers{};
    };

    void decide(Source& from, std::uint64_t number, std::uint64_t offset) noexcept {
        for (std::uint32_t i = 0; i < from.count && !from.decided; ++i) from.decided = from.early[i].offset == offset;
        // All different, which takes several wild ones: the newest it is.
        from.decided = from.decided || from.count == from.early.size();
        if (!from.decided) {
            from.early[from.count++] = {number, offset};
            return;
        }
        from.offset = offset;
        for (std::uint32_t i = 0; i < from.count; ++i)
            if (from.early[i].offset == offset) from.early[i--] = from.early[--from.count];
    }
    [[nodiscard]] Recent& recent_of(std::uint32_t epoch) noexcept {
        Recent& recent = recent_[epoch % recent_.size()];
        if (recent.epoch != epoch) recent = {epoch, 0, {}};
        return recent;
    }
    /// Where the epoch is: the middle one of the last three, so that a wild one is not it. If nothing has opened yet,
    /// the first number of all, to which all others are aligned.
    [[nodiscard]] std::uint64_t reference(std::uint32_t epoch, std::uint64_t number) noexcept {
        const Recent& recent = recent_of(epoch);
        const auto& [a, b, c] = recent.numbers;
        if (recent.count == 0) return number;
        if (recent.count < 3) return a;
        const std::uint64_t low = is_after(a, b) ? b : a;
        const std::uint64_t high = is_after(a, b) ? a : b;
        return is_after(c, high) ? high : is_after(low, c) ? low : c;
    }

    std::vector<std::uint8_t> bits_;
    std::vector<Source> sources_;
    std::array<Recent, epochs_remembered> recent_;  ///< by epoch modulo their count
};

}  // namespace weir::assemble
