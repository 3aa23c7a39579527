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
    bool places = false;     ///< payload goes to places in memory that are ours to choose
    bool on_device = false;  ///< it goes by DPDK, on any device
    /// What is opened takes RoCE frames, which not every sender makes, for `receive` alone.
    bool takes_roce = false;
    bool rdma = false;  ///< a packet is an RDMA message, of as many frames as it takes

    [[nodiscard]] bool opens(Depth depth) const noexcept {
        return open != nullptr && (depth == Depth::receive || (depth == Depth::assemble && !takes_roce));
    }
    [[nodiscard]] bool has(Depth depth) const noexcept { return opens(depth) || (pipeline && depth != Depth::receive); }
    /// `by_weir`: the sender is to be `weir send`.
    [[nodiscard]] bool by_pipeline(Depth depth, bool by_weir) const noexcept {
        return pipeline && depth != Depth::receive && (by_weir || !opens(depth));
    }
};

/// In the order of tables.
[[nodiscard]] std::span<const Transport> transports() noexcept;
/// Throws core::UsageError with the names there are.
[[nodiscard]] const Transport& transport_named(std::string_view name);
/// Why it does not have this depth; empty if it has it.
[[nodiscard]] std::string depth_problem(const Transport& transport, Depth depth);

struct SenderKind {
    std::string_view name;
    std::string_view text;
    /// Throws core::RunError with what this host lacks. Null: it is `weir send`.
    std::unique_ptr<Sender> (*open)(const SenderSpec& spec) = nullptr;
    bool joins = false;       ///< as its Sender::joins_packets()
    bool makes_roce = false;  ///< besides UDP
    bool on_device = false;   ///< as Transport::on_device
    bool rdma = false;        ///< as Transport::rdma
};
[[nodiscard]] std::span<const SenderKind> sender_kinds() noexcept;
/// Throws core::UsageError with the names there are.
[[nodiscard]] const SenderKind& sender_named(std::string_view name);

/// Of those that there are, one for who names none.
[[nodiscard]] std::string_view usual_sender(const Transport& transport, Depth depth) noexcept;

/// What the one sends the other can receive.
[[nodiscard]] bool fit(const Transport& transport, const SenderKind& sender, Depth depth = Depth::receive) noexcept;
/// Throws core::UsageError that says why, unless they fit.
void require_fit(const Transport& transport, const SenderKind& sender, Depth depth = Depth::receive);

}  // namespace weir::bench
