#include "assemble/number_account.hpp"

#include <algorithm>
#include <iterator>

namespace weir::assemble {

void NumberAccount::add(std::uint64_t first, std::uint64_t step, std::uint32_t count) {
    if (count == 0) return;
    if (seen_ == 0) base_ = first;
    const auto offset = static_cast<Offset>(first - base_);
    const Offset last = offset + static_cast<Offset>(step * (count - 1));
    if (sparse_) {
        seen_ += count;
        lowest_ = std::min(lowest_, offset);
        highest_ = std::max(highest_, last);
        return;
    }
    // What continues the last run, or begins after it, needs no look at its single numbers.
    const bool after_all = last >= offset && (runs_.empty() || offset > last_of(*runs_.rbegin())) &&
                           (!folded_last_ || offset > *folded_last_);
    if (after_all && count > 1) {
        seen_ += count;
        if (!runs_.empty()) {
            auto& [begin, run] = *runs_.rbegin();
            if (run.count > 1 && run.step == step && offset == last_of(*runs_.rbegin()) + static_cast<Offset>(step)) {
                run.count += count;
                return;
            }
        }
        runs_.emplace_hint(runs_.end(), offset, Run{step, count});
    } else {
        for (std::uint32_t i = 0; i < count; ++i) insert(offset + static_cast<Offset>(step * i));
    }
    if (runs_.size() > runs_max) bound();
}

/// Cuts `run` in two, so that the second begins after `number`, which lies between two of its numbers.
NumberAccount::Runs::iterator NumberAccount::split(Runs::iterator run, Offset number) {
    Run& low = run->second;
    const std::uint64_t count = static_cast<std::uint64_t>(number - run->first) / low.step + 1;
    const Offset begin = run->first + static_cast<Offset>(low.step * count);
    Run high{low.step, low.count - count};
    low.count = count;
    if (low.count == 1) low.step = 0;
    if (high.count == 1) high.step = 0;
    return runs_.emplace_hint(std::next(run), begin, high);
}

/// The run after `run` becomes a part of it, if it goes on evenly.
void NumberAccount::absorb(Runs::iterator run, Runs::iterator next) {
    if (next == runs_.end() || run->second.count < 2) return;
    const auto gap = static_cast<std::uint64_t>(next->first - last_of(*run));
    if (gap != run->second.step || (next->second.count > 1 && next->second.step != gap)) return;
    run->second.count += next->second.count;
    runs_.erase(next);
}

void NumberAccount::insert(Offset number) {
    if (folded_last_ && number <= *folded_last_) {
        ++seen_;
        ++stragglers_;
        return;
    }
    auto next = runs_.upper_bound(number);
    if (next != runs_.begin()) {
        const auto before = std::prev(next);
        if (number <= last_of(*before)) {
            const auto into = static_cast<std::uint64_t>(number - before->first);
            if (before->second.step == 0 || into % before->second.step == 0) return;  // it has been here
            next = split(before, number);
        }
        const auto gap = static_cast<std::uint64_t>(number - last_of(*before));
        if (before->second.count == 1 || before->second.step == gap) {
            ++seen_;
            before->second.step = gap;
            ++before->second.count;
            absorb(before, next);
            return;
        }
    }
    ++seen_;
    const auto run = runs_.emplace_hint(next, number, Run{});
    if (next == runs_.end()) return;
    const auto gap = static_cast<std::uint64_t>(next->first - number);
    if (next->second.count > 1 && next->second.step != gap) return;
    run->second = {gap, next->second.count + 1};
    runs_.erase(next);
}

NumberAccount::Steps NumberAccount::steps() const {
    Steps found = folded_steps_;
    std::optional<Offset> before = folded_last_;
    for (const auto& run : runs_) {
        if (before) ++found[static_cast<std::uint64_t>(run.first - *before)];
        if (run.second.count > 1) found[run.second.step] += run.second.count - 1;
        before = last_of(run);
    }
    return found;
}

std::uint64_t NumberAccount::usual(const Steps& steps) noexcept {
    const auto most = std::ranges::max_element(steps, {}, [](const auto& step) { return step.second; });
    return most == steps.end() ? 0 : most->first;
}

/// Two thirds of the steps are of this size: enough to see a stride through heavy losses, and more than numbers thinned
/// out at random have. A step of 1 leaves no number out, so it needs no company.
bool NumberAccount::is_usual(const Steps& steps, std::uint64_t stride) noexcept {
    std::uint64_t all = 0;
    for (const auto& [step, count] : steps) all += count;
    const auto found = steps.find(stride);
    const std::uint64_t of_it = found == steps.end() ? 0 : found->second;
    return 3 * of_it >= 2 * all && (of_it >= 2 || (stride == 1 && of_it > 0));
}

/// take(Range): what is missing where neighbours are more than a stride apart, but not a jump.
template <class Take>
void NumberAccount::each_gap(const Runs& runs, std::optional<Offset> before, std::uint64_t stride, Take take) {
    const auto gap = [&](Offset from, std::uint64_t step) {
        if (step > stride && step % stride == 0 && step / stride - 1 <= gap_max)
            take(from + static_cast<Offset>(stride), from + static_cast<Offset>(step - stride));
    };
    for (const auto& run : runs) {
        if (before) gap(*before, static_cast<std::uint64_t>(run.first - *before));
        if (run.second.step > stride)
            for (std::uint64_t i = 0; i + 1 < run.second.count; ++i)
                gap(run.first + static_cast<Offset>(run.second.step * i), run.second.step);
        before = last_of(run);
    }
}

/// Too many runs to keep: either there is no stride in them, or the lower half becomes sums.
void NumberAccount::bound() {
    const Steps all = steps();
    const std::uint64_t stride = usual(all);
    if (!is_usual(all, stride)) {
        sparse_ = true;
        lowest_ = folded_last_ ? folded_first_ : runs_.begin()->first;
        highest_ = last_of(*runs_.rbegin());
        runs_.clear();
        folded_steps_.clear();
        folded_ranges_.clear();
        return;
    }
    Runs low;
    while (low.size() < runs_max / 2) low.insert(low.end(), runs_.extract(runs_.begin()));
    if (!folded_last_) folded_first_ = low.begin()->first;
    if (folded_stride_ != stride) {
        folded_left_out_ += folded_ranges_.size();  // they were of another stride
        folded_ranges_.clear();
    }
    folded_stride_ = stride;
    each_gap(low, folded_last_, stride, [&](Offset from, Offset to) {
        if (folded_ranges_.size() < ranges_max)
            folded_ranges_.push_back(
                {base_ + static_cast<std::uint64_t>(from), base_ + static_cast<std::uint64_t>(to)});
        else
            ++folded_left_out_;
    });
    for (const auto& run : low) {
        if (folded_last_) ++folded_steps_[static_cast<std::uint64_t>(run.first - *folded_last_)];
        if (run.second.count > 1) folded_steps_[run.second.step] += run.second.count - 1;
        folded_last_ = last_of(run);
    }
}

NumberAccount::Result NumberAccount::result(std::optional<std::uint64_t> declared, std::uint64_t odd_allowed) const {
    Result found;
    found.seen = seen_;
    if (seen_ == 0) return found;
    const Offset low = sparse_ ? lowest_ : folded_last_ ? folded_first_ : runs_.begin()->first;
    const Offset high = sparse_ ? highest_ : runs_.empty() ? *folded_last_ : last_of(*runs_.rbegin());
    found.first = base_ + static_cast<std::uint64_t>(low);
    found.last = base_ + static_cast<std::uint64_t>(high);
    found.counting = seen_ == 1 ? Counting::single : Counting::sparse;
    if (sparse_ || seen_ == 1) return found;
    const Steps all = steps();
    const std::uint64_t stride = declared.value_or(usual(all));
    if (!declared && !is_usual(all, stride)) return found;
    for (const auto& [step, count] : all) {
        if (step % stride != 0)
            found.odd += count;
        else if (step / stride - 1 > gap_max)
            found.jumps += count;
        else
            found.missing += count * (step / stride - 1);
    }
    if (!declared && found.odd > odd_allowed) {
        found.missing = 0;
        return found;
    }
    found.counting = Counting::counted;
    found.stride = stride;
    found.missing -= std::min(found.missing, stragglers_);
    const bool same = folded_stride_ == 0 || folded_stride_ == stride;
    if (same) found.ranges = folded_ranges_;
    found.ranges_left_out = folded_left_out_ + (same ? 0 : folded_ranges_.size());
    each_gap(runs_, folded_last_, stride, [&](Offset from, Offset to) {
        if (found.ranges.size() < ranges_max)
            found.ranges.push_back({base_ + static_cast<std::uint64_t>(from), base_ + static_cast<std::uint64_t>(to)});
        else
            ++found.ranges_left_out;
    });
    return found;
}

void NumberAccount::judge_wraps(Result& found, std::uint64_t turn) {
    constexpr std::uint64_t turn_min = 256;  // a loss ends at the wrap of a narrower one every now and then
    if (turn < turn_min || found.counting != Counting::counted || found.stride != 1 || found.ranges_left_out > 0)
        return;
    const std::uint64_t wraps = found.last / turn - found.first / turn;
    if (wraps == 0 || found.first % turn == 0) return;
    Result::Wrap wrap;
    std::uint64_t numbers = 0;
    const auto is_at_wrap = [&](const Range& range) {
        const std::uint64_t to = (range.last + 1) % turn;
        return to == 0 || (to == 1 && range.last - range.first < turn);
    };
    for (const Range& range : found.ranges) {
        if (!is_at_wrap(range)) continue;
        const Result::Wrap one{wrap.times + 1, (range.first - 1) % turn, (range.last + 1) % turn, false};
        if (wrap.times > 0 && (one.from != wrap.from || one.to != wrap.to)) return;
        wrap = one;
        numbers += range.last - range.first + 1;
    }
    // A loss that ends where the counter begins again is rare, unless it is one among others that do not.
    const bool leaves_out_zero = wrap.to == 1 && wrap.from == turn - 1;
    const bool is_early = wrap.from < turn - turn / turn_min;
    if (wrap.times != wraps || (!leaves_out_zero && !is_early)) return;
    wrap.sure = leaves_out_zero || wrap.times > 1;
    found.wrap = wrap;
    if (!wrap.sure) return;
    found.missing -= std::min(found.missing, numbers);
    std::erase_if(found.ranges, is_at_wrap);
}

void NumberAccount::forget_after(Offset number) {
    auto next = runs_.upper_bound(number);
    if (next != runs_.begin() && last_of(*std::prev(next)) > number) next = split(std::prev(next), number);
    for (; next != runs_.end(); next = runs_.erase(next)) seen_ -= next->second.count;
}

NumberAccount::Result NumberAccount::result_up_to(std::uint64_t last, std::optional<std::uint64_t> declared) const {
    NumberAccount low = *this;
    low.forget_after(static_cast<Offset>(last - base_));
    return low.result(declared);
}

}  // namespace weir::assemble
