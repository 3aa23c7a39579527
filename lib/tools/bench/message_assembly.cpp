#include "bench/message_assembly.hpp"

#include <algorithm>

#include "wire/formats/ejfat/ejfat.hpp"

namespace weir::bench {
namespace {

// A network that keeps the order has one message open; of others so many are waited for at once.
constexpr std::uint32_t open_max = 256;
// Longer than a sender is held up, most of the time; what stays open takes room from what comes.
constexpr double timeout_s = 0.02;
constexpr double times_of_message = 4;

assemble::MessageConfig config_of(const PacketPlan& plan, double packets_per_s, bool copies) {
    assemble::MessageConfig config;
    config.sources = plan.sources;
    config.messages_max = open_max;
    // A burst has to find room as well, or it would be lost here and not on the way.
    config.buffers_max = Receiver::held_max - 2 * Receiver::burst;
    config.message_bytes_max = static_cast<std::uint32_t>(plan.message_bytes());
    const double message_s = packets_per_s > 0 ? plan.packets * plan.sources / packets_per_s : 0;
    config.timeout_ns = static_cast<core::TimeNs>((timeout_s + times_of_message * message_s) * 1e9);
    config.touch = true;
    if (copies) {
        config.copies.at_once_bytes = plan.bytes;
        config.copies.cell_bytes = std::max(65536U, (plan.bytes + 255) / 64 * 64);
        config.copies.cells = config.buffers_max / config.copies.in_cell(plan.bytes) + open_max;
    }
    return config;
}

}  // namespace

MessageAssembly::MessageAssembly(const PacketPlan& plan, double packets_per_s, assemble::BufferRelease release,
                                 bool copies)
    : context_(wire::Ejfat::make_context({})),
      joined_(joined_max),
      sources_(plan.sources),
      table_(config_of(plan, packets_per_s, copies), packet_tally_, message_tally_, release) {}

MessageAssembly::~MessageAssembly() = default;

void MessageAssembly::add(const ReceivedPacket& packet, core::TimeNs now) noexcept {
    const wire::Datagram datagram{.payload = packet.payload, .payload_bytes = packet.bytes};
    wire::Fragment fragment;
    const wire::Verdict verdict = wire::Ejfat::decode(context_, datagram, fragment);
    if (verdict == wire::ok)
        table_.add(fragment.header_source, fragment, packet.buffer, now);
    else
        table_.reject(packet.buffer, verdict);
}

void MessageAssembly::take_delivered(core::TimeNs now) noexcept {
    for (const assemble::Descriptor& descriptor : table_.pending()) {
        if (descriptor.message == nullptr) continue;
        if (descriptor.kind == assemble::Descriptor::Kind::deliver && descriptor.message->complete)
            count(*descriptor.message);
        table_.execute({.kind = assemble::Command::Kind::recycle, .message = descriptor.message}, now);
    }
    table_.consume_pending(static_cast<std::uint32_t>(table_.pending().size()));
}

void MessageAssembly::count(const assemble::Message& message) noexcept {
    Joined& joined = joined_[message.number % joined_max];
    if (joined.event != message.number) joined = {message.number, 0};
    if (++joined.messages < sources_) return;
    ++events_;
    packets_ += std::uint64_t{sources_} * message.packets;
}

void MessageAssembly::end_burst(core::TimeNs now) noexcept {
    take_delivered(now);
    table_.end_burst();
}

void MessageAssembly::finish(core::TimeNs now) noexcept {
    table_.finish(now);
    end_burst(now);
}

}  // namespace weir::bench
