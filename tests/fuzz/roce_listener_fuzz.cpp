// libFuzzer target: any bytes as a sequence of RoCE packets, skips, time-outs and evictions of two queue pairs, in
// every numbering mode. Whatever comes, every packet must end in one counter, every buffer must come back once, and the
// limits must hold. Payloads are exact-size heap buffers.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "roce/listener/listener.hpp"

namespace {

using namespace weir;

std::uint64_t given_back = 0;

void release(void** buffers, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) delete[] static_cast<std::byte*>(buffers[i]);
    given_back += count;
}

class Input {
public:
    Input(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}
    [[nodiscard]] bool empty() const { return left_ == 0; }
    std::uint32_t byte() {
        if (left_ == 0) return 0;
        --left_;
        return *data_++;
    }

private:
    const std::uint8_t* data_;
    std::size_t left_;
};

/// One byte of shape, then what the shape needs.
wire::RocePacket packet_of(Input& in, std::uint32_t& psn) {
    const std::uint32_t shape = in.byte();
    wire::RocePacket packet;
    packet.place = static_cast<wire::RocePlace>(shape & 3U);
    packet.is_write = (shape & 4U) != 0;
    packet.has_immediate = (shape & 8U) != 0;
    packet.transport = (shape & 16U) != 0 ? wire::RoceTransport::uc : wire::RoceTransport::rc;
    if (packet.place == wire::RocePlace::only && (shape & 128U) != 0 && !packet.is_write) {
        packet.transport = wire::RoceTransport::ud;
        packet.source_qp = in.byte() & 3U;
    }
    if ((shape & 32U) != 0) {
        const std::uint32_t jump = in.byte();
        psn += jump < 224 ? jump - 112 : jump << 15U;  // near, or far away
    }
    packet.psn = psn++ & 0xffffff;
    packet.bytes = (shape & 64U) != 0 ? 256 : in.byte() * 2;
    packet.immediate = packet.has_immediate ? in.byte() : 0;
    const bool starts = packet.starts();
    if (packet.is_write && starts) packet.dma_length = (shape & 128U) != 0 ? packet.bytes : in.byte() << 5U;
    return packet;
}

/// Packets that come in one burst, or one by one.
class Burst {
public:
    Burst(roce::Listener& listener, bool one_by_one) : listener_(listener), one_by_one_(one_by_one) {}
    void add(std::uint32_t source, const wire::RocePacket& packet, void* buffer, core::TimeNs now) {
        if (one_by_one_) return listener_.add(source, packet, buffer, now);
        packets_.push_back(packet);
        sources_.push_back(source);
        buffers_.push_back(buffer);
        times_.push_back(now);
        if (packets_.size() == roce::Listener::burst_max) end();
    }
    void end() {
        if (!packets_.empty()) listener_.add_burst({packets_, sources_.data(), buffers_.data(), times_.data()});
        packets_.clear();
        sources_.clear();
        buffers_.clear();
        times_.clear();
    }

private:
    roce::Listener& listener_;
    bool one_by_one_;
    std::vector<wire::RocePacket> packets_;
    std::vector<std::uint32_t> sources_;
    std::vector<void*> buffers_;
    std::vector<core::TimeNs> times_;
};

roce::Listener::Config config_of(std::uint32_t mode) {
    roce::Listener::Config config;
    config.sources.resize(2);
    for (std::uint32_t i = 0; i < 2; ++i) {
        roce::Listener::SourceConfig& source = config.sources[i];
        source.source = i;
        source.number_by = static_cast<roce::NumberBy>(mode & 3U);
        source.message_bytes = (mode & 4U) != 0 ? 1000 : 0;
        source.max_message_bytes = 8192;
        if (source.number_by != roce::NumberBy::format) continue;
        wire::FormatOptions options;
        options.declared.name = "d";
        options.declared.header_bytes = 300;
        options.declared.event.emplace();
        options.declared.event->bytes = 1;
        source.format = wire::find_format("declared");
        source.context = source.format->make_context(options);
    }
    config.runs_max = 20;
    config.more_connections = 2;
    config.psn_window = (mode & 8U) != 0 ? 64 : 1024;
    config.window = (mode >> 4U) & 7U;
    config.timeout_ns = 50;
    return config;
}

void read_out(assemble::MessageTable& table, wire::PacketTally& packets) {
    while (!table.pending().empty()) {
        const assemble::Descriptor descriptor = table.pending()[0];
        table.consume_pending(1);
        if (descriptor.kind != assemble::Descriptor::Kind::deliver) continue;
        assemble::Message& message = *descriptor.message;
        std::uint64_t bytes = 0, in_ranges = 0, sum = 0;
        for (std::uint32_t i = 0; i < message.range_count; ++i)
            in_ranges += message.range_data()[i].end - message.range_data()[i].begin;
        assemble::MessageTable::for_each_ref(message, [&](const assemble::FragmentRef& ref) {
            if (message.total_known && std::uint64_t{ref.offset} + ref.bytes > message.total) std::abort();
            bytes += ref.bytes;
            for (std::uint32_t i = 0; i < ref.bytes; ++i) sum += std::to_integer<std::uint64_t>(ref.data[i]);
        });
        if (bytes != in_ranges || sum > 255 * bytes || (message.complete && bytes != message.total)) std::abort();
        packets.account(wire::PacketCounter::placed, message.packets);
        table.execute({.kind = assemble::Command::Kind::recycle, .message = &message}, 0);
    }
    table.end_burst();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input in(data, size);
    const std::uint32_t mode = in.byte();
    given_back = 0;
    wire::PacketTally packets;
    assemble::MessageTally messages;
    assemble::MessageTable::Config table_config;
    table_config.sources = 2;
    table_config.messages_max = 24;
    table_config.buffers_max = 100;
    table_config.range_blocks = 1;
    assemble::MessageTable table(table_config, packets, messages, &release);

    const roce::Listener::Config config = config_of(mode);
    roce::Listener listener(config, table, packets);
    Burst burst(listener, (mode & 128U) != 0);

    std::uint64_t given = 0;
    std::uint32_t psn[2] = {0, 0xfffff0};
    core::TimeNs now = 0;
    while (!in.empty()) {
        const std::uint32_t action = in.byte();
        const std::uint32_t source = action & 1U;
        if (action < 240) {
            wire::RocePacket packet = packet_of(in, psn[source]);
            packet.address_pair = action < 200 ? 0 : action & 6U;
            auto* buffer = new std::byte[packet.bytes];
            std::memset(buffer, static_cast<int>(action), packet.bytes);
            packet.payload = buffer;
            ++given;
            burst.add(source, packet, buffer, ++now);
            continue;
        }
        burst.end();
        if (action < 246) {
            wire::RocePacket read;
            read.transport = wire::RoceTransport::rc;
            read.psn = psn[source]++ & 0xffffff;
            read.dma_length = in.byte() << (in.byte() & 31U);
            listener.skip(source, read, now);
        } else if (action < 250) {
            listener.expire(now += in.byte());
        } else if (action < 253) {
            static_cast<void>(listener.evict_oldest(now));
        } else {
            read_out(table, packets);
        }
    }
    burst.end();
    listener.finish(now);
    table.finish(now);
    read_out(table, packets);
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < core::count_of<wire::PacketCounter>; ++i)
        sum += packets.get(static_cast<wire::PacketCounter>(i));
    if (sum != given || given_back != given || packets.get(wire::PacketCounter::in_flight) != 0 ||
        listener.runs() != 0 || table.buffers_held() != 0)
        std::abort();
    return 0;
}
