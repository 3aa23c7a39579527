// Messages whose packets do not say where they lie, nor how many they are: the packets of one source are numbered, and
// those of one message follow each other. What belongs to whom, what is proven to be all of a message, and where its
// packets lie once it has ended. One per rx lcore.
//
// A message is all there when its numbers are without a gap and the numbers before and after it came as well, with
// something else: that is proof. The first message of a source has none before it, and the last one none after it:
// nothing says that anything is missing of them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "assemble/message.hpp"
#include "assemble/message_config.hpp"
#include "assemble/received_ranges.hpp"

namespace weir::assemble {

class SequenceOrder {
public:
    /// Numbers of a source that are remembered.
    static constexpr std::uint32_t window = 2048;
    /// So many numbers later nothing comes any more that was sent before the first that came. (Heartbeats are noted
    /// ahead of the other packets of their burst.)
    static constexpr std::uint32_t settled = 256;
    /// Numbers that a message's first packet may be away from any other.
    static constexpr std::uint32_t reach = 16384;

    explicit SequenceOrder(const MessageConfig& config);
    [[nodiscard]] static std::uint64_t memory_bytes(const MessageConfig& config) noexcept;

    [[nodiscard]] bool follows(std::uint32_t source) const noexcept {
        return source < sources_.size() && !sources_[source].owners.empty();
    }

    /// Where a packet is among those of its message; nothing: too far away to be one of them. An empty message begins
    /// with it.
    [[nodiscard]] static std::optional<std::uint32_t> place_of(Message& message, std::uint32_t sequence) noexcept {
        if (message.packets == 0) message.first_sequence = sequence;
        const std::uint32_t place = sequence - message.first_sequence + reach;
        return place < 2 * reach ? std::optional(place) : std::nullopt;
    }
    [[nodiscard]] static bool has_no_gap(const Message& message) noexcept { return message.range_count == 1; }
    /// Numbers of it that came.
    [[nodiscard]] static std::uint32_t numbers_of(const Message& message) noexcept {
        std::uint32_t numbers = 0;
        for (std::uint32_t i = 0; i < message.range_count; ++i)
            numbers += message.range_data()[i].end - message.range_data()[i].begin;
        return numbers;
    }
    [[nodiscard]] static std::uint32_t lowest_of(const Message& message) noexcept {
        return message.first_sequence - reach + message.range_data()[0].begin;
    }
    [[nodiscard]] static std::uint32_t highest_of(const Message& message) noexcept {
        return message.first_sequence - reach + message.range_data()[message.range_count - 1].end - 1;
    }

    /// What came with a number.
    struct Owner {
        std::uint64_t number = 0;
        std::uint32_t epoch = 0;
        std::uint32_t sequence = 0;
        bool empty = false;  ///< it brought nothing: a heartbeat
        bool operator==(const Owner& other) const noexcept { return number == other.number && epoch == other.epoch; }
    };
    void note(std::uint32_t source, const Owner& owner) noexcept;
    /// nullptr: it has not come, or so long ago that it is forgotten.
    [[nodiscard]] const Owner* owner(std::uint32_t source, std::uint32_t sequence) const noexcept;
    /// The number that a source began with, once it is settled that it did; true only once.
    [[nodiscard]] std::optional<std::uint32_t> take_first(std::uint32_t source) noexcept {
        Source& from = sources_[source];
        if (!from.first_unsettled || from.highest - from.lowest < settled) return std::nullopt;
        from.first_unsettled = false;
        return from.lowest;
    }
    /// Nothing came before the message from its source, or since it began to count anew.
    [[nodiscard]] bool is_first(const Message& message) const noexcept {
        const Source& source = sources_[message.source];
        const std::uint32_t lowest = lowest_of(message);
        return lowest == source.lowest || (source.began_anew && lowest == source.lowest_before);
    }
    /// Nothing came after it, or the sender began to count anew then.
    [[nodiscard]] bool is_last(const Message& message) const noexcept {
        const Source& source = sources_[message.source];
        const std::uint32_t highest = highest_of(message);
        return highest == source.highest || (source.began_anew && highest == source.highest_before);
    }
    /// Nothing speaks for a packet of it that did not come.
    [[nodiscard]] bool misses_nothing(const Message& message) const noexcept {
        return has_no_gap(message) && (message.begun || is_first(message)) && (message.ended || is_last(message));
    }
    /// The same packets come once more.
    void begin_anew() noexcept;

    /// A message that ends: its packets are put one after the other. What is known of its size is what came.
    void lay_out(Message& message, ReceivedRanges& ranges) noexcept;

private:
    struct Source {
        std::vector<Owner> owners;  ///< by number modulo window
        std::uint32_t lowest = 0;
        std::uint32_t highest = 0;
        std::uint32_t lowest_before = 0;  ///< before the sender began to count anew
        std::uint32_t highest_before = 0;
        bool begun = false;
        bool began_anew = false;
        bool first_unsettled = false;
    };
    static void forget(Source& source) noexcept;

    std::vector<Source> sources_;
    std::vector<std::uint32_t> offsets_;  ///< of the packets of one message
};

}  // namespace weir::assemble
