#include "pipeline/event_numbers.hpp"

#include <algorithm>
#include <numeric>

namespace weir::pipeline {

namespace {

template <class Member>
std::uint64_t sum_of(const std::vector<assemble::NumberAccount::Result>& epochs, Member member) {
    return std::transform_reduce(epochs.begin(), epochs.end(), std::uint64_t{0}, std::plus{},
                                 [&](const auto& epoch) { return epoch.*member; });
}

}  // namespace

std::uint64_t EventNumbers::Summary::seen() const {
    return sum_of(epochs, &assemble::NumberAccount::Result::seen);
}

std::uint64_t EventNumbers::Summary::missing() const {
    return sum_of(epochs, &assemble::NumberAccount::Result::missing);
}

std::uint64_t EventNumbers::Summary::jumps() const {
    return sum_of(epochs, &assemble::NumberAccount::Result::jumps);
}

std::optional<assemble::NumberAccount::Result::Wrap> EventNumbers::Summary::wrap() const {
    for (const auto& epoch : epochs)
        if (epoch.wrap.times > 0) return epoch.wrap;
    return std::nullopt;
}

std::uint64_t EventNumbers::Summary::odd() const {
    return sum_of(epochs, &assemble::NumberAccount::Result::odd);
}

bool EventNumbers::Summary::counted() const {
    return std::ranges::all_of(epochs, [](const auto& epoch) {
        return epoch.counting == Counting::counted || epoch.counting == Counting::single;
    });
}

std::optional<std::uint64_t> EventNumbers::Summary::stride() const {
    std::optional<std::uint64_t> found;
    for (const auto& epoch : epochs) {
        if (epoch.counting != Counting::counted) continue;
        if (found && *found != epoch.stride) return std::nullopt;
        found = epoch.stride;
    }
    return found;
}

EventNumbers::EventNumbers(std::size_t builders, core::TimeNs wait_ns) : settled_(builders, wait_ns) {
    for (std::size_t i = 0; i < builders; ++i) logs_.push_back(std::make_unique<assemble::NumberLog>(log_entries));
}

void EventNumbers::look(core::TimeNs now) {
    for (std::size_t builder = 0; builder < logs_.size(); ++builder)
        logs_[builder]->read([&](const assemble::NumberLog::Run& run) {
            if (epochs_.size() >= epochs_max && !epochs_.contains(run.epoch)) {
                left_out_ += run.count;
                return;
            }
            epochs_[run.epoch].add(run.first, run.step, run.count);
            settled_.moved(builder, {run.epoch, std::max(run.first, run.first + run.step * (run.count - 1))}, now);
        });
    settled_.look(now);
}

std::uint64_t EventNumbers::unlogged() const {
    std::uint64_t count = left_out_;
    for (const auto& log : logs_) count += log->dropped();
    return count;
}

EventNumbers::Summary EventNumbers::summary(std::optional<std::uint64_t> declared, std::uint32_t passes,
                                            std::uint64_t turn) const {
    Summary summary;
    for (const auto& [epoch, account] : epochs_) {
        summary.epochs.push_back(account.result(declared, passes - 1));
        if (passes == 1) assemble::NumberAccount::judge_wraps(summary.epochs.back(), turn);
    }
    summary.unlogged = unlogged();
    return summary;
}

std::optional<EventNumbers::Summary> EventNumbers::settled(std::optional<std::uint64_t> declared,
                                                           std::uint64_t turn) const {
    if (!settled_.up_to()) return std::nullopt;
    const auto [last_epoch, last] = *settled_.up_to();
    Summary summary;
    for (const auto& [epoch, account] : epochs_) {
        if (epoch > last_epoch) break;
        summary.epochs.push_back(epoch < last_epoch ? account.result(declared) : account.result_up_to(last, declared));
        assemble::NumberAccount::judge_wraps(summary.epochs.back(), turn);
    }
    summary.unlogged = unlogged();
    return summary;
}

}  // namespace weir::pipeline
