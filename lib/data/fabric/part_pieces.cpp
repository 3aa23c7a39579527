#include "fabric/part_pieces.hpp"

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "fabric/part_format.hpp"

namespace weir::fabric {

namespace {

const PartHead& head_of(const std::byte* part) {
    return *reinterpret_cast<const PartHead*>(part);
}

std::span<const std::byte> events_of(const std::byte* part) {
    return {part + sizeof(PartHead), head_of(part).bytes - sizeof(PartHead)};
}

/// Calls with each event: its number, and all that belongs to it.
template <class Call>
void for_each_event(const std::byte* part, Call call) {
    for (std::span<const std::byte> left = events_of(part); !left.empty();) {
        const auto& event = *reinterpret_cast<const PartEvent*>(left.data());
        call(event.number, left.first(event.bytes));
        left = left.subspan(event.bytes);
    }
}

/// A part without its events.
std::byte* make_part(PartMemory& memory, const PartHead& head) {
    std::byte* const part = memory.take(head.bytes).data;
    std::construct_at(reinterpret_cast<PartHead*>(part), head);
    return part;
}

/// The events of `part` from `head.block` up to before `head.end`.
std::byte* copy_of(PartMemory& memory, const std::byte* part, PartHead head) {
    const auto is_in = [&head](std::uint64_t number) { return number >= head.block && number < head.end; };
    head.events = 0;
    head.bytes = sizeof head;
    for_each_event(part, [&](std::uint64_t number, std::span<const std::byte> event) {
        if (is_in(number)) ++head.events, head.bytes += event.size();
    });
    if (head.events == 0) return nullptr;
    std::byte* const copy = make_part(memory, head);
    std::byte* at = copy + sizeof head;
    for_each_event(part, [&](std::uint64_t number, std::span<const std::byte> event) {
        if (!is_in(number)) return;
        std::memcpy(at, event.data(), event.size());
        at += event.size();
    });
    return copy;
}

}  // namespace

std::pair<std::byte*, std::byte*> split_part(PartMemory& memory, std::byte* part, cluster::Block at) {
    PartHead before = head_of(part);
    PartHead after = before;
    before.end = after.block = at;
    const std::pair parts{copy_of(memory, part, before), copy_of(memory, part, after)};
    memory.give_back(part);
    return parts;
}

std::byte* join_parts(PartMemory& memory, std::byte* first, std::byte* second) {
    PartHead head = head_of(first);
    head.end = head_of(second).end;
    head.events += head_of(second).events;
    head.bytes += events_of(second).size();
    std::byte* const part = make_part(memory, head);
    std::byte* at = part + sizeof head;
    for (const std::byte* from : {first, second}) {
        std::memcpy(at, events_of(from).data(), events_of(from).size());
        at += events_of(from).size();
    }
    memory.give_back(first);
    memory.give_back(second);
    return part;
}

}  // namespace weir::fabric
