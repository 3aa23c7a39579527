// What turns an event's messages into payload blocks, on a worker lcore: WorkStage writes what is said about an event
// and its sources, an EventEncoder its payload, reduced or not. One per worker; no allocation, lock, exception or clock
// after construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "assemble/event.hpp"
#include "reduce/reducer_counters.hpp"
#include "store/block_writer.hpp"

namespace weir::stages {

/// Of a complete event only the sources that made it complete are listed; of an incomplete one all are.
[[nodiscard]] inline bool lists_source(const assemble::Event& event, std::size_t source) noexcept {
    return event.messages[source] != nullptr || event.cause != assemble::EventCause::complete;
}

class EventEncoder {
public:
    enum class Step : std::uint8_t {
        more,    ///< there is more to do
        full,    ///< the writer has no room for the next block: nothing was done
        done,    ///< the last block is written
        vetoed,  ///< the event is not to be written: rewind. Only with whole_event_bytes()
    };

    virtual ~EventEncoder() = default;

    /// Not 0: what becomes of an event is known only at its end, so all of it has to lie in one buffer until then; it
    /// needs at most so many bytes, all its blocks included.
    [[nodiscard]] virtual std::size_t whole_event_bytes() const noexcept { return 0; }
    [[nodiscard]] virtual store::Content content() const noexcept { return store::Content::received; }

    /// The next event; it stays as it is until `done` or `vetoed`. False: it cannot be reduced, a counter of the
    /// reducer says why, and nothing of it has been written.
    [[nodiscard]] virtual bool begin(const assemble::Event& event) noexcept = 0;
    /// Decoded payload bytes of a source that the event lists; 0 with Content::received.
    [[nodiscard]] virtual std::uint64_t reduced_bytes(std::uint32_t /*source*/) const noexcept { return 0; }
    /// Writes at most one payload block. `read_bytes` becomes the bytes of payload that were read for it.
    [[nodiscard]] virtual Step step(store::BlockWriter& writer, std::uint64_t& read_bytes) noexcept = 0;

    /// Of the reducers, in the order of the chain.
    [[nodiscard]] virtual std::vector<reduce::ReducerCounters> counters() const = 0;
};

}  // namespace weir::stages
