// What the promises of assembly say about a stream of packets, written down with plain maps and the truth about every
// packet: its real event number and epoch. It knows nothing of tables, descriptors, probation or time wheels.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "harness.hpp"

namespace weir::assemble::test {

/// A packet and the truth about it.
struct Sent {
    Packet packet;
    std::uint32_t epoch = 0;
    std::uint64_t number = 0;  ///< never wraps; of a wild one, the number that it came with
    bool wild = false;
};

class Oracle {
public:
    using Counter = wire::PacketCounter;
    using Key = std::tuple<bool, std::uint32_t, std::uint64_t>;  ///< wild, epoch, number
    struct Message {
        std::map<std::uint32_t, std::uint32_t> ranges;  ///< begin -> end; disjoint, touching ones merged
        std::uint32_t bytes = 0;
        TimeNs first_ns = 0;
        MessageResult result;
    };
    struct Event {
        TimeNs first_ns = 0;
        bool open = true;
        EventCause cause = EventCause::complete;
        std::map<std::uint32_t, Message> messages;
        std::optional<Counter> refused;  ///< nothing of it was taken; its packets end there
    };

    Oracle(const Limits& limits, std::size_t ranges_max) : limits_(limits), ranges_max_(ranges_max) {}

    void add(const Sent& sent, std::size_t index) {
        advance(sent.packet.time_ns);
        ++counters[static_cast<std::size_t>(place(sent, index))];
    }
    void finish() {
        std::map<std::uint32_t, TimeNs> newest_whole;
        for (const auto& [key, event] : events)
            for (const auto& [source, message] : event.messages)
                if (message.result.complete) {
                    TimeNs& newest = newest_whole.try_emplace(source, message.first_ns).first->second;
                    newest = std::max(newest, message.first_ns);
                }
        while (!open_.empty()) {
            const Event& event = events[open_.front()];
            const bool passed = std::ranges::any_of(newest_whole, [&](const auto& newest) {
                const auto message = event.messages.find(newest.first);
                if (message == event.messages.end()) return newest.second > event.first_ns;
                return !message->second.result.complete && newest.second > message->second.first_ns;
            });
            close(open_.front(), passed ? EventCause::timeout : EventCause::end_of_run);
        }
    }

    std::map<Key, Event> events;
    std::array<std::uint64_t, core::count_of<Counter>> counters{};

private:
    void close(const Key key, EventCause cause) {
        events[key].open = false;
        events[key].cause = cause;
        std::erase(open_, key);
        for (auto& [source, message] : events[key].messages) {
            std::uint32_t at = 0;
            for (const auto& [begin, end] : message.ranges) {
                if (begin > at) message.result.missing.emplace_back(at, begin);
                at = end;
            }
            if (at < message.result.total) message.result.missing.emplace_back(at, message.result.total);
            std::ranges::sort(message.result.packets);
        }
    }
    void advance(TimeNs now) {
        for (const Key& key : std::vector(open_))
            if (now >= events[key].first_ns + limits_.timeout_ns) close(key, EventCause::timeout);
    }
    /// Why an event that begins now is not taken.
    std::optional<Counter> refusal_of(std::uint64_t number) {
        if (limits_.overload == Overload::evict_oldest) return {};
        if (limits_.overload == Overload::prescale) {
            if (4 * open_.size() >= std::size_t{3} * limits_.open_max)
                overloaded_ = true;
            else if (2 * open_.size() <= limits_.open_max)
                overloaded_ = false;
            const std::uint64_t mask =
                limits_.number_bits >= 64 ? ~0ULL : (std::uint64_t{1} << limits_.number_bits) - 1;
            if (overloaded_ && (number & mask) % limits_.prescale != 0) return Counter::prescaled;
        }
        if (open_.size() == limits_.open_max) return Counter::no_room;
        return {};
    }
    Counter place(const Sent& sent, std::size_t index) {
        const Packet& p = sent.packet;
        const std::uint64_t end = std::uint64_t{p.offset} + p.bytes;
        if (p.total_known && end > p.total) return Counter::malformed_range;
        if (std::max<std::uint64_t>(end, p.total_known ? p.total : 0) > limits_.message_bytes_max)
            return Counter::malformed_message_size;
        if (p.bytes == 0 && !(p.total_known && p.total == 0)) return Counter::malformed_payload_length;
        const Key key{sent.wild, sent.epoch, sent.number};
        if (!events.contains(key)) {
            Event& fresh = events[key];
            fresh.refused = refusal_of(sent.number);
            fresh.open = !fresh.refused.has_value();
            if (fresh.open) {
                if (open_.size() == limits_.open_max) close(open_.front(), EventCause::evicted);
                fresh.first_ns = p.time_ns;
                open_.push_back(key);
            }
        }
        Event& event = events[key];
        if (event.refused.has_value()) return *event.refused;
        const auto known = event.messages.find(p.source);
        if (known != event.messages.end() && known->second.result.complete) return Counter::duplicate;
        if (!event.open) return Counter::late;
        Message& message = event.messages[p.source];
        MessageResult& result = message.result;
        if (result.total_known && ((p.total_known && p.total != result.total) || end > result.total))
            return Counter::conflict;
        if (p.total_known && !message.ranges.empty() && message.ranges.rbegin()->second > p.total)
            return Counter::conflict;
        const auto begin = p.offset;
        for (const auto& [b, e] : message.ranges)
            if (b < end && begin < e) return b <= begin && end <= e ? Counter::duplicate : Counter::conflict;
        if (p.bytes > 0) {
            auto merged = message.ranges;
            std::pair<std::uint32_t, std::uint32_t> whole{begin, static_cast<std::uint32_t>(end)};
            std::erase_if(merged, [&](const auto& r) {
                if (r.second != begin && r.first != end) return false;
                whole = {std::min(whole.first, r.first), std::max(whole.second, r.second)};
                return true;
            });
            merged.insert(whole);
            if (merged.size() > ranges_max_) return Counter::too_fragmented;
            message.ranges = merged;
        }
        if (p.total_known) result.total_known = true, result.total = p.total;
        if (result.packets.empty()) message.first_ns = p.time_ns;
        message.bytes += p.bytes;
        result.packets.push_back(index);
        result.complete = result.total_known && message.bytes == result.total;
        const auto complete = [](const auto& m) { return m.second.result.complete; };
        if (std::ranges::count_if(event.messages, complete) == limits_.sources) close(key, EventCause::complete);
        return Counter::placed;
    }

    Limits limits_;
    std::size_t ranges_max_;
    std::vector<Key> open_;  ///< in order of opening
    bool overloaded_ = false;
};

}  // namespace weir::assemble::test
