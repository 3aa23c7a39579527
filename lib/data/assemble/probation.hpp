// The messages of one source whose number has been before: stragglers, or the first of a source that has begun again.
// They stay on probation until it is clear which.
#pragma once

#include <cstdint>

#include "assemble/message.hpp"
#include "assemble/message_list.hpp"
#include "assemble/number_memory.hpp"

namespace weir::assemble {

class Probation {
public:
    [[nodiscard]] MessageList& messages() noexcept { return messages_; }
    [[nodiscard]] const MessageList& messages() const noexcept { return messages_; }
    void insert(Message& message) noexcept {
        messages_.insert(message);
        ++count_;
    }
    void remove(Message& message) noexcept {
        messages_.remove(message);
        --count_;
    }
    [[nodiscard]] std::uint32_t count() const noexcept { return count_; }

    /// Something may yet speak for a restart, or against it.
    [[nodiscard]] bool is_going_on() const noexcept { return (count_ | evidence_.messages) != 0; }
    /// A message that is not on probation begins: the epoch that goes on is this sender's.
    void epoch_of(std::uint16_t sender) noexcept { sender_ = sender; }
    /// A message begins, which may come to be on probation.
    void begin(Message& message) const noexcept { message.novelty = novelty_; }
    /// A packet came that is new in the epoch that goes on.
    void something_new() noexcept {
        ++novelty_;
        evidence_ = {};
    }
    /// The old numbering goes on, so there was no restart.
    void end() noexcept { evidence_ = {}; }

    /// A restarted source may reach the number of a message that is still open from before, or one of which nothing
    /// came before. Once it has sent as many packets in whole messages again as a restart takes, and nothing new in
    /// between, these belong to the new epoch, although the messages are not enough to begin it.
    [[nodiscard]] bool is_restarting(std::uint64_t number) const noexcept {
        return evidence_.packets >= packets_of(evidence_.run.sender) && is_after(number, evidence_.run.last);
    }
    /// A message on probation has become whole. True: the source has begun again.
    [[nodiscard]] bool whole(Message& message) noexcept;

    /// Messages that were whole one after the other.
    struct Run {
        std::uint64_t first = 0;  ///< number of the first of them
        std::uint64_t last = 0;
        std::uint16_t sender = 0;  ///< of all of them
        [[nodiscard]] bool holds(std::uint64_t number) const noexcept {
            return !is_after(first, number) && !is_after(number, last);
        }
    };
    /// The one that showed that the source has begun again.
    [[nodiscard]] Run take_run() noexcept {
        const Run run = evidence_.run;
        evidence_ = {};
        return run;
    }

private:
    /// Several whole messages in increasing order, with nothing new in between, are a restart. Three messages are not
    /// enough where a message is one packet: a switch that repeats a few packets would pass. So eight packets as well.
    static constexpr std::uint32_t restart_messages = 3;
    static constexpr std::uint32_t restart_packets = 8;
    /// Two senders that use the same numbers, each for a while, look alike. A source that has begun again with another
    /// address takes so many times as many.
    static constexpr std::uint32_t other_sender_factor = 16;
    [[nodiscard]] std::uint32_t packets_of(std::uint16_t sender) const noexcept {
        return sender == sender_ ? restart_packets : other_sender_factor * restart_packets;
    }
    [[nodiscard]] std::uint32_t messages_of(std::uint16_t sender) const noexcept {
        return sender == sender_ ? restart_messages : other_sender_factor * restart_messages;
    }

    /// What speaks for a restart: an unbroken run of whole messages on probation, of rising numbers. It outlives the
    /// messages, which may time out before a slow source has sent enough of them.
    struct Evidence {
        std::uint32_t messages = 0;
        std::uint32_t packets = 0;
        Run run;
    };

    MessageList messages_;
    std::uint32_t count_ = 0;
    std::uint32_t novelty_ = 0;  ///< moves with every packet taken for this epoch while there is probation
    std::uint16_t sender_ = 0;
    Evidence evidence_;
};

}  // namespace weir::assemble
