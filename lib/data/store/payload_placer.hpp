// Where the bytes of an event's payload belong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>

#include "store/event_scanner.hpp"

namespace weir::store {

/// Maps the compact payload of an event to places in the messages of its sources; where the payload is not what was
/// received, to places in their parts of it, which have no gaps.
class PayloadPlacer {
public:
    /// Called with the index of the source in the event, the offset in its message, and the bytes there. Where the size
    /// of a message was never learnt, offsets count what was received, apart from gaps that are known.
    using Sink = std::function<void(std::size_t source_index, std::uint64_t offset, std::span<const std::byte>)>;

    PayloadPlacer(const EventInfo& event, Sink sink) : event_(event), sink_(std::move(sink)) {}
    void take(std::span<const std::byte> payload);

private:
    const EventInfo& event_;
    Sink sink_;
    std::size_t source_ = 0;
    std::size_t gap_ = 0;
    std::uint64_t offset_ = 0;
    std::uint64_t taken_ = 0;
};

}  // namespace weir::store
