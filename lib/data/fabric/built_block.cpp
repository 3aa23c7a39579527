#include "fabric/built_block.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "fabric/part_format.hpp"

namespace weir::fabric {

namespace {

using assemble::EventCause;

constexpr std::uint64_t message_bytes_limit = std::numeric_limits<std::uint32_t>::max();

void demand(bool holds, const char* what) {
    if (!holds) throw std::runtime_error(what);
}

template <class T>
T read(std::span<const std::byte> bytes) {
    demand(bytes.size() >= sizeof(T), "it is cut short");
    T value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
}

/// What makes events of a block incomplete that were not so in a readout node: a node went away, or nothing came there
/// in time.
EventCause cause_of(std::span<const cluster::BuiltPart> parts, const std::vector<cluster::NodeId>& readouts) {
    const bool is_gone = std::ranges::any_of(
        readouts, [&](cluster::NodeId node) { return parts[node].part == cluster::Part::node_down; });
    return is_gone ? EventCause::node_down : EventCause::timeout;
}

}  // namespace

void BuiltBlock::fill(const Layout& layout, cluster::BlockSpan span, std::span<const cluster::BuiltPart> parts,
                      const std::function<void(cluster::NodeId, const std::string&)>& reject) {
    span_ = span;
    events_.clear();
    messages_.clear();
    pieces_.clear();
    memory_.clear();
    causes_.clear();
    for (std::size_t place = 0; place < parts.size(); ++place) {
        const auto node = static_cast<cluster::NodeId>(place);
        const cluster::BuiltPart& part = parts[node];
        if (part.part != cluster::Part::whole) continue;
        memory_.push_back(part.payload);
        const std::size_t messages = messages_.size();
        const std::size_t pieces = pieces_.size();
        const std::size_t causes = causes_.size();
        try {
            add_part(layout, node, {reinterpret_cast<const std::byte*>(part.payload.handle), part.payload.bytes});
        } catch (const std::runtime_error& error) {
            messages_.resize(messages);
            pieces_.resize(pieces);
            causes_.resize(causes);
            reject(node, error.what());
        }
    }
    make_events(cause_of(parts, layout.readouts));
    leases_.assign(messages_.size(), 1);
}

void BuiltBlock::add_part(const Layout& layout, cluster::NodeId node, std::span<const std::byte> part) {
    const auto head = read<PartHead>(part);
    demand(head.magic == part_magic && head.block >= span_.block && head.end <= span_.end,
           "it is not a part of the block");
    demand(head.bytes == part.size(), "it is longer or shorter than it says");
    part = part.subspan(sizeof head);
    for (std::uint32_t i = 0; i < head.events; ++i) {
        const auto event = read<PartEvent>(part);
        demand(event.bytes >= sizeof event && event.bytes <= part.size(), "an event is longer than the part");
        demand(event.number >= head.block && event.number < head.end, "an event is of another block");
        add_event(layout, node, part.first(event.bytes));
        part = part.subspan(event.bytes);
    }
    demand(part.empty(), "there is more in it than its events");
}

void BuiltBlock::add_event(const Layout& layout, cluster::NodeId node, std::span<const std::byte> bytes) {
    const auto event = read<PartEvent>(bytes);
    demand(static_cast<std::size_t>(event.cause) < assemble::cause_names.size(), "an event has an unknown cause");
    if (event.cause != EventCause::complete) causes_.emplace_back(event.number, event.cause);
    // The payload lies after all records.
    std::span<const std::byte> records = bytes.subspan(sizeof event);
    std::size_t all = 0;
    for (std::uint32_t i = 0; i < event.sources; ++i) {
        const auto source = read<store::SourceBody>(records.subspan(all));
        const std::uint64_t missing = std::uint64_t{source.missing_count} * sizeof(store::MissingRange);
        all += sizeof source + store::padded(missing);
        demand(all <= records.size(), "a source is longer than its event");
    }
    std::span<const std::byte> payload = records.subspan(all);
    demand(event.payload_bytes <= payload.size(), "the payload is longer than its event");
    payload = payload.first(event.payload_bytes);
    for (std::uint32_t i = 0; i < event.sources; ++i)
        records = records.subspan(add_source(layout, node, event.number, records, payload));
    demand(payload.empty(), "there is more payload than its sources have");
}

/// Takes its bytes off the payload; returns how long its record is.
std::size_t BuiltBlock::add_source(const Layout& layout, cluster::NodeId node, std::uint64_t number,
                                   std::span<const std::byte> record, std::span<const std::byte>& payload) {
    const auto source = read<store::SourceBody>(record);
    demand(source.source < layout.readouts.size() && layout.readouts[source.source] == node,
           "a source is not one of the node");
    demand(source.state < store::SourceState::absent && source.meta_bytes <= store::SourceBody::meta_bytes_max,
           "a source is in no state that it can be in");
    demand(source.received_bytes <= payload.size(), "a source has more payload than there is");
    demand(source.declared_bytes <= message_bytes_limit && source.packets > 0,
           "a message has no size that it can have");
    Message message;
    message.number = number;
    message.source = source.source;
    message.complete = source.state == store::SourceState::complete;
    message.total_known = source.state != store::SourceState::size_unknown;
    message.total = static_cast<std::uint32_t>(source.declared_bytes);
    message.meta_bytes = source.meta_bytes;
    message.meta = record.data() + offsetof(store::SourceBody, meta);
    message.packets = source.packets;
    message.first_ns = source.first_ns;
    message.last_ns = source.last_ns;
    const std::size_t ranges_bytes = std::size_t{source.missing_count} * sizeof(store::MissingRange);
    add_pieces(message, source.received_bytes, record.subspan(sizeof source, ranges_bytes),
               payload.first(source.received_bytes));
    payload = payload.subspan(source.received_bytes);
    messages_.push_back(message);
    return sizeof source + store::padded(ranges_bytes);
}

/// What lies between the missing ranges.
void BuiltBlock::add_pieces(Message& message, std::uint64_t received, std::span<const std::byte> ranges,
                            std::span<const std::byte> payload) {
    message.first_piece = static_cast<std::uint32_t>(pieces_.size());
    std::uint64_t offset = 0;
    std::uint64_t taken = 0;
    const auto add = [&](std::uint64_t bytes) {
        demand(taken + bytes <= received && offset + bytes <= message_bytes_limit,
               "a message has more than it received");
        if (bytes > 0 || received == 0)
            pieces_.push_back(
                {payload.data() + taken, static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(bytes)});
        taken += bytes;
        offset += bytes;
    };
    for (; !ranges.empty(); ranges = ranges.subspan(sizeof(store::MissingRange))) {
        const auto missing = read<store::MissingRange>(ranges);
        demand(missing.offset >= offset && missing.bytes > 0, "missing ranges are not in order");
        if (missing.offset > offset) add(missing.offset - offset);
        offset += missing.bytes;
    }
    if (taken < received || received == 0) add(received - taken);
    message.pieces = static_cast<std::uint32_t>(pieces_.size()) - message.first_piece;
    if (message.complete)
        demand(ranges.empty() && message.pieces == 1 && received == message.total, "a whole message is not whole");
    demand(!message.total_known || offset <= message.total, "a message is longer than it says");
}

/// Messages in order, and an event for each of their numbers.
void BuiltBlock::make_events(EventCause usual) {
    std::ranges::sort(messages_, [](const Message& a, const Message& b) {
        return a.number != b.number ? a.number < b.number : a.source < b.source;
    });
    // A node has a number once; if not, the first counts.
    messages_.erase(
        std::unique(messages_.begin(), messages_.end(),
                    [](const Message& a, const Message& b) { return a.number == b.number && a.source == b.source; }),
        messages_.end());
    std::ranges::sort(causes_);
    for (std::uint32_t at = 0; at < messages_.size(); ++at) {
        const std::uint64_t number = messages_[at].number;
        if (events_.empty() || events_.back().number != number) {
            EventCause cause = usual;
            const auto known =
                std::ranges::lower_bound(causes_, number, {}, [](const auto& entry) { return entry.first; });
            if (usual != EventCause::node_down && known != causes_.end() && known->first == number)
                cause = known->second;
            events_.push_back({number, at, 0, cause});
        }
        ++events_.back().messages;
    }
}

}  // namespace weir::fabric
