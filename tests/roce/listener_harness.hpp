// A listener, or an in-order receiver, with a message table after it, and the builder's part of the work done at once:
// what is delivered is read out, checked against its own ranges, and recycled. Buffers are numbers; each must be given
// back exactly once.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "roce/listener/listener.hpp"
#include "roce/responder/in_order_receiver.hpp"

namespace weir::roce::test {

using assemble::ByteRange;
using wire::PacketCounter;

struct Delivered {
    std::uint32_t source = 0;
    std::uint64_t number = 0;
    std::uint32_t epoch = 0;
    bool complete = false;
    bool total_known = false;
    std::uint32_t total = 0;
    std::vector<ByteRange> ranges;
    std::vector<std::byte> bytes;  ///< as long as the message, or as its last range; holes are 0
    std::vector<std::byte> meta;
    core::TimeNs first_ns = 0;
    core::TimeNs last_ns = 0;
};

/// A packet as it comes to the listener.
struct Arrived {
    wire::RocePacket packet;
    core::TimeNs now = 0;
    std::uint32_t source = 0;
};

inline std::vector<std::uint32_t>& released() {
    static std::vector<std::uint32_t> counts;
    return counts;
}

struct HarnessConfig {
    std::vector<Listener::SourceConfig> sources{{}};
    std::uint32_t messages_max = 4096;
    std::uint32_t buffers_max = 16384;
    std::uint32_t window = 0;
    std::uint32_t psn_window = 1 << 16;
    std::uint32_t more_connections = 4;
    std::uint32_t horizon = 4096;
    core::TimeNs timeout_ns = 1'000'000'000'000;
    bool in_order = false;  ///< packets go to the in-order receiver
};

class Harness {
public:
    explicit Harness(const HarnessConfig& config)
        : table_(table_config(config), packets, messages, &release),
          in_order_(config.in_order),
          listener({.sources = config.in_order ? std::vector<MessageSource>() : config.sources,
                    .runs_max = config.messages_max,
                    .psn_window = config.psn_window,
                    .more_connections = config.more_connections,
                    .window = config.window,
                    .timeout_ns = config.timeout_ns},
                   table_, packets),
          receiver({.sources = config.in_order ? config.sources : std::vector<MessageSource>(),
                    .psn_window = config.psn_window,
                    .timeout_ns = config.timeout_ns},
                   table_) {
        released().clear();
    }

    void add(const wire::RocePacket& packet, core::TimeNs now, std::uint32_t source = 0) {
        released().push_back(0);
        void* buffer = reinterpret_cast<void*>(released().size());
        if (in_order_)
            receiver.add(source, packet, buffer, now);
        else
            listener.add(source, packet, buffer, now);
        drain(now);
    }
    /// Packets of one poll, by one of the listener's two ways.
    void add_burst(std::span<const Arrived> arrived, bool one_by_one) {
        std::vector<wire::RocePacket> of;
        std::vector<std::uint32_t> sources;
        std::vector<void*> buffers;
        std::vector<core::TimeNs> times;
        for (const Arrived& at : arrived) {
            released().push_back(0);
            of.push_back(at.packet);
            sources.push_back(at.source);
            buffers.push_back(reinterpret_cast<void*>(released().size()));
            times.push_back(at.now);
        }
        if (!one_by_one) listener.add_burst({of, sources.data(), buffers.data(), times.data()});
        for (std::size_t i = 0; one_by_one && i < of.size(); ++i) listener.add(sources[i], of[i], buffers[i], times[i]);
        drain(times.back());
    }
    void skip(const wire::RocePacket& packet, core::TimeNs now, std::uint32_t source) {
        listener.skip(source, packet, now);
        drain(now);
    }
    void forget(core::TimeNs now, std::optional<std::uint32_t> first_psn = {}, std::uint32_t source = 0) {
        if (in_order_)
            receiver.forget(source, now, first_psn);
        else
            listener.forget(source, now, first_psn);
        drain(now);
    }
    [[nodiscard]] PsnCounts::Values psn_counts(std::uint32_t source = 0) const {
        return in_order_ ? receiver.psn_counts(source) : listener.psn_counts(source);
    }
    void expire(core::TimeNs now) {
        listener.expire(now);
        receiver.expire(now);
        table_.expire(now);
        drain(now);
    }
    /// Ends the run and checks what must hold whatever came in.
    void finish(core::TimeNs now) {
        listener.finish(now);
        receiver.finish(now);
        drain(now);
        table_.finish(now);
        drain(now);
        EXPECT_EQ(listener.runs() + receiver.collecting(), 0U);
        EXPECT_EQ(table_.buffers_held(), 0U);
        EXPECT_EQ(packets.get(PacketCounter::in_flight), 0U);
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < core::count_of<PacketCounter>; ++i)
            sum += packets.get(static_cast<PacketCounter>(i));
        EXPECT_EQ(sum, released().size());
        for (const std::uint32_t count : released()) ASSERT_EQ(count, 1U);
        std::uint64_t fates = 0;
        for (std::size_t i = 1; i < core::count_of<assemble::MessageCounter>; ++i)
            fates += messages.get(static_cast<assemble::MessageCounter>(i));
        EXPECT_EQ(messages.get(assemble::MessageCounter::opened), fates);
    }
    void drain(core::TimeNs now) {
        while (!table_.pending().empty()) {
            const assemble::Descriptor descriptor = table_.pending()[0];
            table_.consume_pending(1);
            if (descriptor.kind != assemble::Descriptor::Kind::deliver) continue;
            read(*descriptor.message);
            packets.account(PacketCounter::placed, descriptor.message->packets);
            messages.add(assemble::MessageCounter::delivered);
            table_.execute({.kind = assemble::Command::Kind::recycle, .message = descriptor.message}, now);
        }
        table_.end_burst();
    }

    wire::PacketTally packets;
    assemble::MessageTally messages;
    std::vector<Delivered> delivered;

private:
    static assemble::MessageTable::Config table_config(const HarnessConfig& config) {
        assemble::MessageTable::Config out;
        for (const auto& source : config.sources) out.sources = std::max(out.sources, source.source + 1);
        out.messages_max = config.messages_max;
        out.buffers_max = config.buffers_max;
        out.horizon = config.horizon;
        return out;
    }
    static void release(void** buffers, std::uint32_t count) {
        for (std::uint32_t i = 0; i < count; ++i) ++released()[reinterpret_cast<std::uintptr_t>(buffers[i]) - 1];
    }
    /// The references must cover exactly the ranges, and nothing twice.
    void read(assemble::Message& message) {
        Delivered out{.source = message.source,
                      .number = message.number,
                      .epoch = message.epoch,
                      .complete = message.complete,
                      .total_known = message.total_known,
                      .total = message.total,
                      .ranges = {},
                      .bytes = {},
                      .meta = {message.meta.begin(), message.meta.begin() + message.meta_bytes},
                      .first_ns = message.first_ns,
                      .last_ns = message.last_ns};
        std::uint32_t size = message.total_known ? message.total : 0;
        for (std::uint32_t i = 0; i < message.range_count; ++i) {
            out.ranges.push_back(message.range_data()[i]);
            ASSERT_TRUE(!message.total_known || out.ranges.back().end <= message.total);
            size = std::max(size, out.ranges.back().end);
        }
        out.bytes.resize(size);
        std::vector<bool> expected(size), found(size);
        for (const ByteRange& range : out.ranges)
            for (std::uint32_t i = range.begin; i < range.end; ++i) expected[i] = true;
        std::uint32_t received = 0;
        assemble::MessageTable::for_each_ref(message, [&](const assemble::FragmentRef& ref) {
            ASSERT_LE(std::uint64_t{ref.offset} + ref.bytes, size);
            received += ref.bytes;
            for (std::uint32_t i = 0; i < ref.bytes; ++i) {
                ASSERT_FALSE(found[ref.offset + i]);
                found[ref.offset + i] = true;
                out.bytes[ref.offset + i] = ref.data[i];
            }
        });
        EXPECT_TRUE(expected == found);
        EXPECT_EQ(received, message.received_bytes);
        EXPECT_TRUE(!message.complete || received == message.total);
        delivered.push_back(std::move(out));
    }

    assemble::MessageTable table_;
    bool in_order_;

public:
    Listener listener;
    InOrderReceiver receiver;
    [[nodiscard]] assemble::MessageTable& table() { return table_; }
};

/// Of messages that are of several packets.
inline constexpr std::uint32_t pmtu = 256;

/// Cuts a message into packets as a sender does. The payload must outlive them.
struct MessageSpec {
    wire::RoceTransport transport = wire::RoceTransport::uc;
    bool is_write = false;
    std::optional<std::uint32_t> immediate;
    std::uint32_t pmtu = test::pmtu;
};

inline std::vector<wire::RocePacket> packets_of(const MessageSpec& spec, const std::vector<std::byte>& payload,
                                                std::uint32_t psn) {
    const std::size_t count = std::max<std::size_t>(1, (payload.size() + spec.pmtu - 1) / spec.pmtu);
    std::vector<wire::RocePacket> out(count);
    for (std::size_t i = 0; i < count; ++i) {
        const bool first = i == 0, last = i + 1 == count;
        wire::RocePacket& packet = out[i];
        packet.transport = spec.transport;
        packet.is_write = spec.is_write;
        packet.place = first && last ? wire::RocePlace::only
                       : first       ? wire::RocePlace::first
                       : last        ? wire::RocePlace::last
                                     : wire::RocePlace::middle;
        packet.payload = payload.data() + i * spec.pmtu;
        packet.bytes = static_cast<std::uint32_t>(std::min<std::size_t>(spec.pmtu, payload.size() - i * spec.pmtu));
        packet.psn = (psn + static_cast<std::uint32_t>(i)) & 0xffffff;
        if (spec.is_write && first) packet.dma_length = static_cast<std::uint32_t>(payload.size());
        if (last && spec.immediate) {
            packet.has_immediate = true;
            packet.immediate = *spec.immediate;
        }
    }
    return out;
}

/// Bytes that say which message and which place they are from: little-endian words id << 18 | offset / 4.
inline std::vector<std::byte> payload_of(std::uint32_t id, std::size_t size) {
    std::vector<std::byte> out(size);
    for (std::size_t at = 0; at < size; at += 4) {
        const auto word = static_cast<std::uint32_t>(id << 18U | at / 4);
        std::memcpy(out.data() + at, &word, std::min<std::size_t>(4, size - at));
    }
    return out;
}

}  // namespace weir::roce::test
