// The ways to receive and to send that can be measured: a table with an entry each.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "bench/pipeline.hpp"
#include "bench/receiver.hpp"
#include "bench/receiving.hpp"
#include "bench/sender.hpp"

namespace weir::bench {

struct Transport {
    std::string_view name;
    std::string_view text;   ///< what it is, in a sentence without its full stop
    bool real_time = false;  ///< its thread is to run under SCHED_FIFO
    /// For the depths up to `assemble`. Throws core::RunError with what this host lacks. Null: `weir run` alone can.
    std::unique_ptr<Receiver> (*open)(const ReceiverSpec& spec) = nullptr;
    std::optional<PipelineKind> pipeline{};  ///< for `full`, and for `assemble` where there is nothing to open
    /// It gets frames from the kernel as they are, and not what the kernel's UDP makes of them: what a sender joins is
    /// one.
    bool sees_frames = false;
    bool places = false;  ///< payload goes to places in memory that are ours to choose
    bool rdma = false;    ///< a packet is an RDMA message, of as many frames as it takes

    [[nodiscard]] bool has(Depth depth) const noexcept {
        return depth == Depth::full ? pipeline.has_value() : open != nullptr || (pipeline && depth == Depth::assemble);
    }
    /// `by_weir`: the sender is to be `weir send`.
    [[nodiscard]] bool by_pipeline(Depth depth, bool by_weir) const noexcept {
        return pipeline && depth != Depth::receive && (by_weir || depth == Depth::full || open == nullptr);
    }
};

/// In the order of tables.
[[nodiscard]] std::span<const Transport> transports() noexcept;
/// Throws core::UsageError with the names there are.
[[nodiscard]] const Transport& transport_named(std::string_view name);

struct SenderKind {
    std::string_view name;
    std::string_view text;
    /// Throws core::RunError with what this host lacks. Null: it is `weir send`.
    std::unique_ptr<Sender> (*open)(const Endpoint& to) = nullptr;
    bool joins = false;  ///< as its Sender::joins_packets()
    bool rdma = false;   ///< as Transport::rdma
};
[[nodiscard]] std::span<const SenderKind> sender_kinds() noexcept;
/// Throws core::UsageError with the names there are.
[[nodiscard]] const SenderKind& sender_named(std::string_view name);

/// This sender; or, where RDMA messages are received and it is one that sends packets, the one that sends those.
[[nodiscard]] const SenderKind& sender_for(const Transport& transport, const SenderKind& sender) noexcept;
/// What the one, or who is sender_for() in its place, sends the other can receive.
[[nodiscard]] bool fit(const Transport& transport, const SenderKind& sender) noexcept;
/// Throws core::UsageError that says why, unless they fit.
void require_fit(const Transport& transport, const SenderKind& sender);

}  // namespace weir::bench
