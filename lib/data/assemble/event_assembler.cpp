#include "assemble/event_assembler.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "core/error.hpp"

namespace weir::assemble {

namespace {

// Room beside the open events: messages on probation, and those that a full table closes.
constexpr std::uint32_t messages_spare = 64;
// Packets are rarely smaller; of smaller ones the references run out before the memory does.
constexpr std::uint64_t packet_bytes_least = 512;

wire::FormatContext context_of(const EventAssembler::Config& config) {
    if (config.format == nullptr) throw core::UsageError("an assembler needs a format (wire::find_format)");
    if (config.sources == 0 || config.events_max == 0)
        throw core::UsageError("an assembler needs a source at least, and room for an event at least");
    const wire::FormatContext context = config.format->make_context(config.options);
    if (!context.carries_number)
        throw core::UsageError(fmt::format(
            "packets of the format '{}' do not say which event they are of: an assembler needs one that does",
            config.format->name));
    if (config.options.sls.interfaces_joined && context.sls.lane_by == wire::LaneBy::datagram)
        throw core::UsageError(
            "an assembler tells joined interfaces apart by the rows of their packets: sls.lane_by = row");
    return context;
}

std::vector<std::uint8_t> number_bits_of(const EventAssembler::Config& config, const wire::FormatContext& context) {
    return std::vector<std::uint8_t>(config.sources, context.number_bits);
}

MessageConfig messages_of(const EventAssembler::Config& config, const wire::FormatContext& context) {
    MessageConfig messages;
    messages.sources = config.sources;
    messages.messages_max = (config.events_max + 1) * config.sources + messages_spare;
    messages.buffers_max = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(config.memory_bytes / packet_bytes_least, 1024, 1U << 24U));
    messages.message_bytes_max = context.message_bytes_max;
    messages.timeout_ns = config.timeout_ns;
    messages.number_bits = number_bits_of(config, context);
    if (context.in_sequence) messages.in_sequence.assign(config.sources, 1);
    return messages;
}

EventBuilder::Config events_of(const EventAssembler::Config& config, const wire::FormatContext& context) {
    EventBuilder::Config events;
    events.sources = events.sources_needed = config.sources;
    events.open_max = config.events_max;
    events.timeout_ns = config.timeout_ns;
    events.owner.resize(config.sources);
    events.number_bits = number_bits_of(config, context);
    events.messages_max = messages_of(config, context).messages_max;
    return events;
}

const Message* message_of(const Event& event, std::uint32_t source) noexcept {
    return source < event.messages.size() ? event.messages[source] : nullptr;
}

template <class Visitor>
void for_each_part(const Message& message, Visitor&& visit) {
    for (const FragmentBlock* block = message.first_block; block != nullptr; block = block->next)
        for (std::uint32_t i = 0; i < block->count; ++i) visit(block->refs[i]);
}

}  // namespace

std::uint32_t AssembledEvent::received_bytes(std::uint32_t source) const noexcept {
    std::uint32_t bytes = 0;
    if (const Message* message = message_of(event_, source); message != nullptr)
        for_each_part(*message, [&](const FragmentRef& part) { bytes += part.bytes; });
    return bytes;
}

std::vector<std::byte> AssembledEvent::payload(std::uint32_t source, std::byte fill) const {
    const Message* message = message_of(event_, source);
    if (message == nullptr) return {};
    std::uint32_t size = message->total_known ? message->total : 0;
    for_each_part(*message, [&](const FragmentRef& part) {
        if (part.bytes > 0) size = std::max(size, part.offset + part.bytes);  // those that others cover are empty
    });
    std::vector<std::byte> bytes(size, fill);
    for_each_part(*message,
                  [&](const FragmentRef& part) { std::copy_n(part.data, part.bytes, bytes.data() + part.offset); });
    return bytes;
}

/// A datagram on the heap; its payload follows.
struct EventAssembler::Buffer {
    EventAssembler& owner;
    std::uint32_t bytes;

    [[nodiscard]] std::byte* payload() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
};

EventAssembler::EventAssembler(const Config& config, Handler handler)
    : config_(config),
      handler_(std::move(handler)),
      context_(context_of(config)),
      table_(messages_of(config, context_), table_packets_, table_messages_, &EventAssembler::release),
      builder_(events_of(config, context_), builder_packets_, builder_messages_, events_) {}

/// What is open is given up: the handler is not called.
EventAssembler::~EventAssembler() {
    handler_ = [](const AssembledEvent&) {};
    finish();
}

EventAssembler::Buffer* EventAssembler::keep(std::span<const std::byte> payload) {
    void* memory = ::operator new(sizeof(Buffer) + payload.size());
    auto* buffer = new (memory) Buffer{*this, static_cast<std::uint32_t>(payload.size())};
    std::ranges::copy(payload, buffer->payload());
    held_bytes_ += payload.size();
    return buffer;
}

void EventAssembler::release(void** buffers, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
        auto* buffer = static_cast<Buffer*>(buffers[i]);
        buffer->owner.held_bytes_ -= buffer->bytes;
        ::operator delete(buffer);
    }
}

wire::Verdict EventAssembler::add(std::uint32_t source, std::span<const std::byte> payload, core::TimeNs now) {
    if (source >= config_.sources)
        throw core::UsageError(fmt::format("there is no source {}: they are 0 to {}", source, config_.sources - 1));
    advance(now);
    while (held_bytes_ + payload.size() > config_.memory_bytes && builder_.evict_oldest()) exchange();
    Buffer* const buffer = keep(payload);
    const auto lane = static_cast<std::uint8_t>(config_.options.interfaces > 1 ? source % 2 : 0);
    const wire::Datagram datagram{.payload = buffer->payload(), .payload_bytes = buffer->bytes, .lane = lane};
    wire::Fragment fragment;
    wire::Verdict verdict = wire::ok;
    config_.format->decode_burst(context_, {&datagram, 1}, &fragment, &verdict);
    if (verdict == wire::ok) {
        table_.add(source, fragment, buffer, now_);
    } else {
        if (verdict == wire::Verdict::control && context_.in_sequence) table_.note_heartbeat(source, fragment, now_);
        table_.reject(buffer, verdict);
    }
    exchange();
    return verdict;
}

void EventAssembler::advance(core::TimeNs now) {
    now_ = std::max(now_, now);
    table_.expire(now_);
    exchange();
}

void EventAssembler::finish() {
    table_.finish(now_);
    exchange();
    const std::span<const core::TimeNs> newest_whole = builder_.newest_whole();
    builder_.finish({&newest_whole, 1});
    builder_.end_input();
    exchange();
}

std::uint64_t EventAssembler::packets(wire::PacketCounter counter) const noexcept {
    return table_packets_.get(counter) + builder_packets_.get(counter);
}

/// Descriptors to the builder, events to the handler, commands back: until nothing moves.
void EventAssembler::exchange() {
    for (bool moved = true; moved;) {
        moved = false;
        while (!table_.pending().empty()) {
            const std::span<const Descriptor> descriptors = table_.pending();
            for (const Descriptor& descriptor : descriptors)
                static_cast<void>(builder_.offer(descriptor));  // does not wait
            table_.consume_pending(static_cast<std::uint32_t>(descriptors.size()));
            moved = true;
        }
        builder_.advance(now_);
        while (Event* event = builder_.pop_closed()) {
            handler_(AssembledEvent(*event));
            for (Message* message : event->messages)
                if (message != nullptr) table_.execute({.kind = Command::Kind::recycle, .message = message}, now_);
            builder_.release(*event);
            moved = true;
        }
        const std::span<const Command> commands = builder_.commands(0);
        for (const Command& command : commands) table_.execute(command, now_);
        moved |= !commands.empty();
        builder_.consume_commands(0, static_cast<std::uint32_t>(commands.size()));
        table_.end_burst();
    }
}

}  // namespace weir::assemble
