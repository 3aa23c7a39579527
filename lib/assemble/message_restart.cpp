// The numbers that have been before: stragglers, or a source that has begun again. They stay on probation until it is
// clear which.
#include <algorithm>

#include "assemble/message_table.hpp"

namespace weir::assemble {

using core::MessageCounter;
using core::PacketCounter;

Message* MessageTable::open_probation(std::uint32_t source, std::uint64_t number, PacketCounter fate,
                                      TimeNs now) noexcept {
    Source& from = sources_[source];
    if (from.probation_count == probation_max) cancel(*from.probation.first);
    // Probation may not take the last places: it is most likely a straggler.
    if (messages_free_ <= config_.messages_max / 8) return nullptr;
    Message* message = allocate(source, now);
    if (message == nullptr) return nullptr;
    message->number = number;
    message->epoch = from.epoch + 1;
    message->fallback = fate;
    open_.insert({number, scope_of(source, from.epoch + 1)}, message);
    list(*message, MessageState::probation);
    messages_.add(MessageCounter::opened);
    return message;
}

// A restarted source may reach the number of a message that is still open from before, or one of which nothing came
// before. Once it has sent as many packets in whole messages again as a restart takes, and nothing new in between,
// these belong to the new epoch, although the messages are not enough to begin it.
bool MessageTable::is_restarting(const Source& from, std::uint64_t number) noexcept {
    return from.evidence.packets >= restart_packets && is_after(number, from.evidence.last);
}

/// Where a packet for a number that is not open goes if it does not begin a new epoch; nothing for a new number.
std::optional<PacketCounter> MessageTable::fate_of(Source& from, std::uint64_t number, bool restarting) noexcept {
    const std::optional<PacketCounter> fate = from.memory.fate(number);
    if (!fate.has_value() && restarting && !is_after(number, from.newest)) return PacketCounter::late;
    return fate;
}

void MessageTable::cancel(Message& message) noexcept {
    abandon(message, message.fallback);
}

void MessageTable::cancel_probation(std::uint32_t source) noexcept {
    Source& from = sources_[source];
    while (from.probation.first != nullptr) cancel(*from.probation.first);
    from.evidence = {};
}

bool MessageTable::cancel_oldest_probation() noexcept {
    Message* oldest = nullptr;
    for (const Source& from : sources_)
        if (Message* first = from.probation.first; first != nullptr)
            if (oldest == nullptr || first->first_ns < oldest->first_ns) oldest = first;
    if (oldest == nullptr) return false;
    cancel(*oldest);
    return true;
}

void MessageTable::whole_on_probation(Message& message, TimeNs now) noexcept {
    message.whole_before = true;
    Evidence& evidence = sources_[message.source].evidence;
    // Something new came while it was collected, as between the copies of a stream that is mirrored twice.
    if (message.novelty != sources_[message.source].novelty) return;
    if (evidence.messages == 0 || !is_after(message.number, evidence.last))
        evidence = {0, 0, message.number, message.number};
    ++evidence.messages;
    evidence.packets += message.packets;
    evidence.last = message.number;
    if (evidence.messages >= restart_messages && evidence.packets >= restart_packets) restart(message.source, now);
}

void MessageTable::restart(std::uint32_t source, TimeNs now) noexcept {
    Source& from = sources_[source];
    // No packet can join what is open from before any more, and the builder wants no answers from two epochs at once.
    while (from.open.first != nullptr) deliver(*from.open.first, now);
    ++from.epoch;
    from.memory.clear();
    from.current = nullptr;
    const Evidence run = from.evidence;
    from.evidence = {};
    // What came before the run did is a straggler. If the run's first message has timed out, all others are younger.
    const Message* first = find(source, run.first, from.epoch);
    bool begun = first == nullptr;
    for (Message* message = from.probation.first; message != nullptr;) {
        Message* next = message->next;
        begun = begun || message == first;
        const bool within = !is_after(run.first, message->number) && !is_after(message->number, run.last);
        if (!begun && !within) {
            cancel(*message);
        } else if (message->whole_before) {
            deliver(*message, now);
        } else {
            from.probation.remove(*message);
            --from.probation_count;
            list(*message, MessageState::open);
            message->announced = true;
            push(Descriptor::Kind::announce, *message, nullptr, now);
        }
        message = next;
    }
    from.newest = run.last;
    from.numbers.restart(run.last - from.shift);
    follow(source, run.first);
    follow(source, run.last);
}

/// A message begins under this number.
void MessageTable::opened(std::uint32_t source, std::uint64_t number) noexcept {
    Source& from = sources_[source];
    from.numbers.opened(number - from.shift);
    from.newest = number;
    if (config_.follows_numbers) follow(source, number);
}

void MessageTable::follow(std::uint32_t source, std::uint64_t number) noexcept {
    if (!config_.follows_numbers) return;
    Source& from = sources_[source];
    if (!from.followed) {
        from.followed = true;
        const unsigned bits = source < config_.number_bits.size() ? config_.number_bits[source] : 64U;
        if (!numbers_.empty()) from.turn = extend_number(number, numbers_.origin(), bits) - number;
    }
    numbers_.add(number + from.turn);
}

std::uint32_t MessageTable::newest_epoch() const noexcept {
    std::uint32_t newest = 0;
    for (const Source& from : sources_) newest = std::max(newest, from.epoch);
    return newest;
}

void MessageTable::begin_pass(std::uint64_t shift, std::uint32_t epoch, TimeNs now) noexcept {
    config_.follows_numbers = false;
    for (std::uint32_t source = 0; source < sources_.size(); ++source) {
        Source& from = sources_[source];
        cancel_probation(source);
        from.numbers = NumberExtension(source < config_.number_bits.size() ? config_.number_bits[source] : 64U);
        from.shift = shift;
        if (epoch <= from.epoch) continue;
        // Others have restarted more often in a pass. As in restart: two epochs at once are too many.
        while (from.open.first != nullptr) deliver(*from.open.first, now);
        from.epoch = epoch;
        from.memory.clear();
        from.current = nullptr;
    }
}

}  // namespace weir::assemble
