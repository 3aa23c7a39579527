#include "probe/message_account.hpp"

#include <algorithm>

namespace weir::probe {

void MessageAccount::follow(std::uint32_t source, std::uint32_t sequence) {
    if (sequence_bits_ == 0) return;
    const std::uint64_t mask = (std::uint64_t{1} << sequence_bits_) - 1;
    std::optional<std::uint32_t>& last = sources_[source].sequence;
    const std::uint64_t step = last ? (std::uint64_t{sequence} - *last) & mask : 1;
    // Half of the circle is behind: a packet that was overtaken fills one of the gaps that were counted.
    if (step > mask / 2) {
        if (sources_[source].missing > 0) --sources_[source].missing;
        return;
    }
    if (step == 0) return;
    sources_[source].missing += step - 1;
    last = sequence;
}

void MessageAccount::add(std::uint32_t index, const wire::Fragment& fragment, core::TimeNs time_ns) {
    Source& source = sources_[index];
    ++source.packets;
    source.bytes += fragment.bytes;
    follow(index, fragment.sequence);
    const auto [at, fresh] = events_[fragment.number].try_emplace(index);
    Message& message = at->second;
    if (fresh) {
        message.first_ns = message.last_ns = time_ns;
        message.in_sequence = fragment.in_sequence;
        message.first_sequence = fragment.sequence;
    }
    const std::uint32_t offset = place_of(message, fragment);
    const bool earlier =
        fragment.number < source.highest || (fragment.number == source.highest && offset < source.highest_offset);
    if (source.begun && earlier) ++source.disordered;
    if (!source.begun || !earlier) {
        source.highest = fragment.number;
        source.highest_offset = offset;
    }
    source.begun = true;
    if (fragment.in_sequence) source.sequences.insert(fragment.sequence);
    const auto place = std::ranges::lower_bound(message.offsets, offset);
    if (place != message.offsets.end() && *place == offset) {
        ++source.duplicates;
        return;
    }
    message.offsets.insert(place, offset);
    message.bytes += fragment.bytes;
    ++message.packets;
    message.first_ns = std::min(message.first_ns, time_ns);
    message.last_ns = std::max(message.last_ns, time_ns);
    if (!fragment.total_known || message.total_known) return;
    message.total = fragment.total;
    message.total_known = true;
}

void MessageAccount::add_control(std::uint32_t source, const wire::Fragment& fragment) {
    follow(source, fragment.sequence);
    if (fragment.in_sequence) sources_[source].sequences.insert(fragment.sequence);
}

std::uint32_t MessageAccount::place_of(const Message& message, const wire::Fragment& fragment) noexcept {
    constexpr std::uint32_t middle = 1U << 31U;  // so that packets before the first that came are before it
    return message.in_sequence ? fragment.sequence - message.first_sequence + middle : fragment.offset;
}

/// Of a message in sequence: no number is missing in it, nor right before or after it. (The first and the last one of a
/// source have no neighbour on one side.)
bool MessageAccount::is_whole(const Source& source, const Message& message) {
    if (!message.in_sequence) return message.total_known && message.bytes >= message.total;
    const std::uint32_t first = message.first_sequence + (message.offsets.front() - (1U << 31U));
    const std::uint32_t last = first + message.packets - 1;
    const auto came = [&](std::uint32_t sequence) { return source.sequences.contains(sequence); };
    return message.offsets.back() - message.offsets.front() + 1 == message.packets &&
           (first == *source.sequences.begin() || came(first - 1)) &&
           (last == *source.sequences.rbegin() || came(last + 1));
}

void MessageAccount::finish_event(const Event& event) {
    std::uint64_t packets = 0;
    std::uint64_t bytes = 0;
    bool complete = event.size() == sources_.size();
    core::TimeNs first = event.begin()->second.first_ns;
    core::TimeNs last = first;
    for (const auto& [index, message] : event) {
        Source& source = sources_[index];
        ++source.messages;
        const bool whole = is_whole(source, message);
        source.whole += whole ? 1 : 0;
        complete = complete && whole;
        packets += message.packets;
        bytes += message.total_known ? message.total : message.bytes;
        first = std::min(first, message.first_ns);
        last = std::max(last, message.last_ns);
        message_packets_ = std::max(message_packets_, message.packets);
        if (!whole) continue;
        const std::uint64_t total = message.in_sequence ? message.bytes : message.total;
        message_bytes_min_ = std::min(message_bytes_min_, total);
        message_bytes_max_ = std::max(message_bytes_max_, total);
    }
    event_bytes_ = std::max(event_bytes_, bytes);
    met_ += event.size() == sources_.size() ? 1 : 0;
    if (!complete) return;
    ++complete_;
    packets_complete_ += packets;
    longest_ns_ = std::max(longest_ns_, last - first);
}

void MessageAccount::finish() {
    for (const auto& [number, event] : events_) finish_event(event);
}

std::uint64_t MessageAccount::duplicates() const noexcept {
    std::uint64_t out = 0;
    for (const Source& source : sources_) out += source.duplicates;
    return out;
}

void MessageAccount::report(FoundStream& out) const {
    for (std::size_t i = 0; i < sources_.size(); ++i) {
        const Source& from = sources_[i];
        FoundSource& to = out.sources[i];
        to.packets = from.packets;
        to.bytes = from.bytes;
        to.messages = from.messages;
        to.whole = from.whole;
        to.duplicates = from.duplicates;
        to.disordered = from.disordered;
        if (sequence_bits_ != 0) to.missing_packets = from.missing;
    }
    std::vector<std::uint64_t> numbers;
    for (const auto& [number, event] : events_) numbers.push_back(number);
    out.numbers = numbers_of(numbers);
    out.events = events_.size();
    out.complete = complete_;
    out.met = met_;
    out.event_bytes = event_bytes_;
    out.message_packets = message_packets_;
    out.message_bytes_min = message_bytes_max_ == 0 ? 0 : message_bytes_min_;
    out.message_bytes_max = message_bytes_max_;
    out.longest_event_ns = longest_ns_;
}

FoundNumbers numbers_of(std::span<const std::uint64_t> rising) {
    FoundNumbers out;
    if (rising.empty()) return out;
    out.first = rising.front();
    out.last = rising.back();
    out.distinct = rising.size();
    std::map<std::uint64_t, std::size_t> steps;
    for (std::size_t i = 1; i < rising.size(); ++i) ++steps[rising[i] - rising[i - 1]];
    const auto common = std::ranges::max_element(steps, {}, [](const auto& entry) { return entry.second; });
    if (common == steps.end() || common->second * 2 < rising.size() - 1) return out;
    out.stride = common->first;
    // Only steps that are a multiple of it leave numbers out.
    for (const auto& [step, count] : steps)
        if (step % out.stride == 0) out.missing += (step / out.stride - 1) * count;
    return out;
}

}  // namespace weir::probe
