// A block as its builder has it: the parts of all nodes, checked, and in the order in which the pipeline takes them,
// event by event. Made by the cluster's thread, read by an rx lcore, which finds nothing to check or to allocate any
// more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "assemble/event_cause.hpp"
#include "cluster/outlet.hpp"
#include "core/units.hpp"

namespace weir::fabric {

class BuiltBlock {
public:
    /// Bytes of a message that lie together.
    struct Piece {
        const std::byte* data = nullptr;
        std::uint32_t offset = 0;  ///< in the message
        std::uint32_t bytes = 0;
    };
    struct Message {
        std::uint64_t number = 0;
        std::uint32_t source = 0;
        std::uint32_t total = 0;  ///< bytes, where they are known
        bool total_known = false;
        bool complete = false;
        std::uint8_t meta_bytes = 0;
        const std::byte* meta = nullptr;
        std::uint32_t packets = 0;  ///< that it was received in
        core::TimeNs first_ns = 0;
        core::TimeNs last_ns = 0;
        std::uint32_t first_piece = 0;
        std::uint32_t pieces = 0;
    };
    struct Event {
        std::uint64_t number = 0;
        std::uint32_t first_message = 0;
        std::uint32_t messages = 0;  ///< by rising source
        /// If it is not complete: why.
        assemble::EventCause cause = assemble::EventCause::timeout;
    };
    /// What parts have to fit to.
    struct Layout {
        std::vector<cluster::NodeId> readouts;  ///< by source: the node that it belongs to
    };

    /// What was here before is gone. `reject` is called for each part that is not what it should be, with the reason;
    /// nothing of such a part is taken.
    void fill(const Layout& layout, cluster::BlockSpan span, std::span<const cluster::BuiltPart> parts,
              const std::function<void(cluster::NodeId, const std::string&)>& reject);

    [[nodiscard]] cluster::Block block() const noexcept { return span_.block; }
    /// By rising number.
    [[nodiscard]] std::span<const Event> events() const noexcept { return events_; }
    [[nodiscard]] std::span<const Message> messages(const Event& event) const noexcept {
        return std::span(messages_).subspan(event.first_message, event.messages);
    }
    [[nodiscard]] std::span<const Piece> pieces(const Message& message) const noexcept {
        return std::span(pieces_).subspan(message.first_piece, message.pieces);
    }
    /// One for each message, by its place among all of them: not 0 while the message is lent to the pipeline.
    [[nodiscard]] std::span<std::uint8_t> leases() noexcept { return leases_; }
    [[nodiscard]] std::size_t place_of(const Message& message) const noexcept {
        return static_cast<std::size_t>(&message - messages_.data());
    }
    /// The memory of its parts.
    [[nodiscard]] std::span<const cluster::Payload> memory() const noexcept { return memory_; }

    std::uint64_t life = 0;  ///< whoever hands it on remembers here for whom

private:
    void add_part(const Layout& layout, cluster::NodeId node, std::span<const std::byte> part);
    void add_event(const Layout& layout, cluster::NodeId node, std::span<const std::byte> bytes);
    [[nodiscard]] std::size_t add_source(const Layout& layout, cluster::NodeId node, std::uint64_t number,
                                         std::span<const std::byte> record, std::span<const std::byte>& payload);
    void add_pieces(Message& message, std::uint64_t received, std::span<const std::byte> ranges,
                    std::span<const std::byte> payload);
    void make_events(assemble::EventCause usual);

    cluster::BlockSpan span_;
    std::vector<Event> events_;
    std::vector<Message> messages_;
    std::vector<Piece> pieces_;
    std::vector<std::uint8_t> leases_;
    std::vector<cluster::Payload> memory_;
    std::vector<std::pair<std::uint64_t, assemble::EventCause>> causes_;  ///< of events that were incomplete there
};

}  // namespace weir::fabric
