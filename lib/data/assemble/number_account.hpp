// Which event numbers of a run have been seen, and so which whole events never came. For an ordinary thread: it
// allocates, but stays within a bound.
//
// A detector that counts its events leaves no number out; then a gap is a loss, exact to the event. Others have numbers
// with nothing to say about how many there should be (time stamps with jitter, triggers that are thinned out at
// random). The account looks at the differences between neighbouring numbers: where at least two thirds of them are the
// same and all others are multiples of it, the numbers are counted with that stride. Otherwise nothing is said about
// gaps.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace weir::assemble {

class NumberAccount {
public:
    static constexpr std::size_t ranges_max = 1000;      ///< gaps that are listed
    static constexpr std::size_t runs_max = 32768;       ///< evenly rising runs that are kept apart
    static constexpr std::uint64_t gap_max = 1U << 24U;  ///< numbers; a larger step is a jump, not a loss

    /// The numbers first, first + stride, ..., last.
    struct Range {
        std::uint64_t first = 0;
        std::uint64_t last = 0;
        bool operator==(const Range&) const = default;
    };
    enum class Counting : std::uint8_t {
        none,     ///< no number has been seen
        single,   ///< one number: nothing lies between it and another
        counted,  ///< with a fixed stride
        sparse,   ///< with none
    };
    struct Result {
        Counting counting = Counting::none;
        std::uint64_t seen = 0;   ///< distinct numbers
        std::uint64_t first = 0;  ///< the lowest and the highest
        std::uint64_t last = 0;
        std::uint64_t stride = 0;   ///< `counted`: as declared, or as learnt
        std::uint64_t missing = 0;  ///< `counted`: numbers between the first and the last that were not seen
        std::vector<Range> ranges;  ///< of them, in order; at most ranges_max
        std::uint64_t ranges_left_out = 0;
        std::uint64_t jumps = 0;  ///< steps of more than gap_max numbers: what lies between is not counted as missing
        std::uint64_t odd = 0;    ///< steps that are no multiple of the stride
        /// How the counter begins again, where it leaves numbers of its field out: GigE Vision's goes from 65535 to 1.
        struct Wrap {
            std::uint64_t times = 0;  ///< 0: it leaves none out, as far as was seen
            std::uint64_t from = 0;   ///< the last number of a turn, as carried
            std::uint64_t to = 0;     ///< the first
            bool sure = false;        ///< the numbers between are not missing; otherwise they may be a loss
        };
        Wrap wrap{};
    };

    /// `count` numbers from `first` on, `step` apart. Each number once; a repeated one is ignored.
    void add(std::uint64_t first, std::uint64_t step, std::uint32_t count);

    /// `declared`: the stride, where it is known. `odd_allowed`: steps that need not be multiples of the stride.
    [[nodiscard]] Result result(std::optional<std::uint64_t> declared = {}, std::uint64_t odd_allowed = 0) const;
    /// Looks at the gaps where a counter of `turn` numbers begins again. Those that are all alike are the counter's.
    static void judge_wraps(Result& found, std::uint64_t turn);
    /// As if no number above `last` had been seen yet.
    [[nodiscard]] Result result_up_to(std::uint64_t last, std::optional<std::uint64_t> declared = {}) const;

private:
    using Offset = std::int64_t;  ///< from the first number seen, so that counters may wrap at 2^64
    struct Run {
        std::uint64_t step = 0;  ///< 0 while there is one number
        std::uint64_t count = 1;
    };
    using Runs = std::map<Offset, Run>;
    using Steps = std::map<std::uint64_t, std::uint64_t>;  ///< how often neighbours were so far apart

    static Offset last_of(const Runs::value_type& run) noexcept {
        return run.first + static_cast<Offset>(run.second.step * (run.second.count - 1));
    }
    void insert(Offset number);
    Runs::iterator split(Runs::iterator run, Offset number);
    void absorb(Runs::iterator run, Runs::iterator next);
    void bound();
    void forget_after(Offset number);
    [[nodiscard]] Steps steps() const;
    [[nodiscard]] static std::uint64_t usual(const Steps& steps) noexcept;
    [[nodiscard]] static bool is_usual(const Steps& steps, std::uint64_t stride) noexcept;
    template <class Take>
    static void each_gap(const Runs& runs, std::optional<Offset> before, std::uint64_t stride, Take take);

    std::uint64_t base_ = 0;
    std::uint64_t seen_ = 0;
    Runs runs_;
    bool sparse_ = false;  ///< for good: too many runs, and no stride in them
    Offset lowest_ = 0;    ///< once sparse
    Offset highest_ = 0;
    // Low numbers of which only sums are left.
    std::optional<Offset> folded_last_;
    Offset folded_first_ = 0;
    Steps folded_steps_;
    std::uint64_t folded_stride_ = 0;
    std::vector<Range> folded_ranges_;
    std::uint64_t folded_left_out_ = 0;
    std::uint64_t stragglers_ = 0;  ///< seen below folded_last_, where their gap has been counted
};

}  // namespace weir::assemble
