#include "stream.hpp"

#include <algorithm>

namespace weir::assemble::test {

void StreamMaker::choose() {
    Limits& limits = stream_.limits;
    limits.sources = 3 + static_cast<std::uint32_t>(below(3));
    limits.rx_count = 1 + static_cast<std::uint32_t>(below(3));
    limits.horizon = 128;
    limits.messages_max = 500;
    limits.buffers_max = 1500;
    limits.queued_max = 200;
    limits.open_max = 300;
    limits.message_bytes_max = 1200;
    constexpr std::array<unsigned, 5> widths{8, 12, 16, 32, 64};
    limits.number_bits = widths[below(widths.size())];
    limits.range_blocks = chance(0.7) ? 0 : 120;
    stream_.ranges_max = limits.range_blocks == 0 ? std::size_t{assemble::Message::inline_ranges} : 1000;
    events_ = 18 + below(15);
    epochs_ = chance(0.4) ? 2 + static_cast<std::uint32_t>(below(2)) : 1;
    if (epochs_ == 1 && chance(0.4)) {
        stream_.limited = true;
        limits.open_max = 2 + static_cast<std::uint32_t>(below(6));
        constexpr std::array policies{Overload::evict_oldest, Overload::refuse_new, Overload::prescale};
        limits.overload = policies[below(policies.size())];
        limits.prescale = 2 + static_cast<std::uint32_t>(below(4));
    }
    constexpr std::array<TimeNs, 4> gaps{0, 20, 150, 900};
    gap_ = gaps[below(gaps.size())];
    constexpr std::array<TimeNs, 4> jitters{1, 30, 300, 900};
    jitter_ = jitters[below(jitters.size())];
    const auto maybe = [&](double most) {
        return chance(0.5) ? 0 : most * std::uniform_real_distribution<>()(random_);
    };
    loss_ = maybe(0.1);
    copies_ = maybe(0.15);
    cuts_ = maybe(0.05);
    overlaps_ = maybe(0.05);
    undeclared_ = maybe(0.8);
}

void StreamMaker::choose_numbers() {
    const unsigned bits = stream_.limits.number_bits;
    // Narrow counters must stay within a quarter of their range within an epoch, to fall back where they restart.
    constexpr std::array<std::uint64_t, 3> strides{1, 3, 11};
    const std::uint64_t stride = bits == 8 ? 1 : strides[below(strides.size())];
    const bool sparse = bits > 12 && chance(0.3);
    std::uint64_t number = bits == 64 ? random_() : below(std::uint64_t{1} << bits);
    if (chance(0.3)) number = (bits == 64 ? 0 : std::uint64_t{1} << bits) - 1 - below(40);  // wraps soon
    for (std::size_t i = 0; i < events_ + 8; ++i) {
        numbers_.push_back(number);
        number += sparse ? 1 + below(100) : stride;
    }
}

Stream StreamMaker::make() {
    do try_to_make();
    while (stream_.sent.size() < packets_min);
    return stream_;
}

void StreamMaker::try_to_make() {
    stream_ = {};
    numbers_.clear();
    choose();
    choose_numbers();
    std::vector<Plan> plans;
    for (std::uint32_t source = 0; source < stream_.limits.sources; ++source)
        plans.push_back({source, 0, 10'000 + static_cast<TimeNs>(below(200)), below(3), 0, 0, {}});
    for (std::uint32_t epoch = 0; epoch < epochs_; ++epoch) {
        if (epoch > 0) restart(plans);
        for (Plan& plan : plans) {
            plan.last = plan.first + events_ - below(3);  // sources need not begin, or end, with the same event
            add_epoch(plan);
            if (epoch == 0) make_wild(plan);
        }
    }
    std::vector<Sent>& sent = stream_.sent;
    for (const Plan& plan : plans) sent.insert(sent.end(), plan.sent.begin(), plan.sent.end());
    std::ranges::stable_sort(sent, {}, [](const Sent& s) { return s.packet.time_ns; });
    if (epochs_ == 1 && chance(0.4)) sent.resize(sent.size() - below(sent.size() / 3));  // ends in the middle
    if (stream_.limited)
        for (std::size_t i = 1; i < sent.size(); ++i)
            sent[i].packet.time_ns = std::max(sent[i].packet.time_ns, sent[i - 1].packet.time_ns + 1);
    if (stream_.limits.number_bits < 64)
        for (Sent& s : sent) s.packet.number &= (std::uint64_t{1} << stream_.limits.number_bits) - 1;
}

/// All sources restart together, but for one that may take its time: a restart is proven by several messages, and
/// events that time out while it is being proven would be cut.
void StreamMaker::restart(std::vector<Plan>& plans) {
    TimeNs soonest = 0;
    for (const Plan& plan : plans) soonest = std::max(soonest, repeatable_from(plan));
    soonest += static_cast<TimeNs>(below(chance(0.5) ? 50 : 3000));
    for (Plan& plan : plans) {
        plan.start = soonest + static_cast<TimeNs>(below(300));
        end_epoch(plan);
        ++plan.epoch;
        plan.first += below(3);
        plan.clean = 8;
    }
    if (chance(0.3)) plans[below(plans.size())].start += 20'000;
}

/// When everything that the first messages after a restart repeat has ended at last.
TimeNs StreamMaker::repeatable_from(const Plan& plan) const {
    TimeNs last = plan.start;
    for (const Sent& s : plan.sent)
        if (s.epoch == plan.epoch && !is_after(s.number, numbers_[plan.first + 12]))
            last = std::max(last, s.packet.time_ns);
    return last + stream_.limits.timeout_ns + 1;
}

/// The source restarts: nothing old comes afterwards, and no old duplicates shortly before.
void StreamMaker::end_epoch(Plan& plan) const {
    std::erase_if(plan.sent, [&](const Sent& s) {
        const bool first_piece = s.packet.offset == 0;
        return s.epoch == plan.epoch && (s.packet.time_ns >= plan.start ||
                                         (!first_piece && s.packet.time_ns >= plan.start - stream_.limits.timeout_ns));
    });
}

void StreamMaker::add_epoch(Plan& plan) {
    TimeNs clean_until = plan.start;
    for (std::size_t index = plan.first; index < plan.last; ++index) {
        const bool clean = index - plan.first < plan.clean;
        TimeNs at = plan.start + gap_ * static_cast<TimeNs>(index - plan.first);
        if (clean) clean_until = at = clean_until + static_cast<TimeNs>(below(8));
        add_message(plan, index, std::max(at, clean_until), clean);
        if (clean) clean_until = plan.sent.back().packet.time_ns;
    }
}

void StreamMaker::add_message(Plan& plan, std::size_t index, TimeNs at, bool clean) {
    const bool many = chance(0.1);
    const auto pieces = 1 + static_cast<std::uint32_t>(below(many ? 24 : 8));
    const auto bytes = 8 + static_cast<std::uint32_t>(below(many ? 40 : 120));
    const std::uint32_t total = pieces * bytes - static_cast<std::uint32_t>(below(8));
    for (std::uint32_t i = 0; i < pieces; ++i) {
        Sent sent{{}, plan.epoch, numbers_[index], false};
        Packet& p = sent.packet;
        p = {plan.source, sent.number, i * bytes, bytes, total, at + (clean ? i : static_cast<TimeNs>(below(jitter_)))};
        p.bytes = std::min(bytes, total - p.offset);
        // With restarts to come, every number must have been seen: its first piece is spared.
        const bool spared = clean || (epochs_ > 1 && i == 0);
        if (!clean && chance(0.03)) p.time_ns += 500 + static_cast<TimeNs>(below(2500));
        if (!spared) {
            if (chance(loss_)) continue;
            if (chance(cuts_)) p.bytes = 1 + static_cast<std::uint32_t>(below(p.bytes));
            if (chance(overlaps_)) p.offset += static_cast<std::uint32_t>(below(bytes));
            if (chance(overlaps_)) p.offset -= std::min(p.offset, static_cast<std::uint32_t>(below(bytes)));
            if (chance(overlaps_ / 4)) p.total += 4;
            if (chance(overlaps_ / 8)) p.total = 2000;
            if (chance(overlaps_ / 8)) p.bytes = 0;
        }
        if (!clean && chance(undeclared_)) p.total_known = false;
        plan.sent.push_back(sent);
        if (!clean) add_copy(plan, sent);
    }
}

void StreamMaker::add_copy(Plan& plan, const Sent& sent) {
    while (chance(copies_)) {
        Sent copy = sent;
        copy.packet.time_ns += static_cast<TimeNs>(below(chance(0.8) ? 400 : 3000));
        plan.sent.push_back(copy);
    }
}

/// A bit of one packet's number flips; with wide counters, of several.
void StreamMaker::make_wild(Plan& plan) {
    const unsigned bits = stream_.limits.number_bits;
    if (bits < 16 || !chance(0.5)) return;
    const unsigned from = bits == 16 ? 13 : bits == 32 ? 16 : 20;
    for (std::size_t n = bits == 64 ? 1 + below(4) : 1; n > 0; --n) {
        Sent& sent = plan.sent[below(plan.sent.size())];
        const bool copied = std::ranges::count(plan.sent, sent.number, &Sent::number) > 12;
        if (sent.wild || copied || !is_after(sent.number, numbers_[4]) || (epochs_ > 1 && sent.packet.offset == 0))
            continue;
        // Each source flips bits of its own, so that two wild ones are never the same.
        const unsigned sources = stream_.limits.sources;
        unsigned bit = from + sent.packet.source + sources * static_cast<unsigned>(below((bits - from) / sources + 1));
        if (bit >= bits) bit = from + sent.packet.source;
        if (bit >= bits) continue;
        sent.wild = true;
        sent.number ^= std::uint64_t{1} << bit;
        sent.packet.number = sent.number;
    }
}

}  // namespace weir::assemble::test
