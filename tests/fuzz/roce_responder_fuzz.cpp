// libFuzzer target: any bytes as packets for three queue pairs (RC, UC, UD) with a responder, and an in-order receiver,
// a listener and a message table after it, with room that comes and goes, resets and time-outs. Checked after every
// packet: the PSN moves only as the rules say, what is let through lies in a region, there is at most one
// acknowledgement and only from RC, the answer fits the counter; and at the end that every packet ended in one counter
// and every buffer came back once.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "roce/listener/listener.hpp"
#include "roce/responder/frame_memory.hpp"
#include "roce/responder/in_order_receiver.hpp"
#include "roce/responder/responder.hpp"

namespace {

using namespace weir;
using roce::AnswerCounter;
using wire::PacketCounter;

std::uint64_t given_back = 0;

void release(void** buffers, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) delete[] static_cast<std::byte*>(buffers[i]);
    given_back += count;
}

void require(bool holds) {
    if (!holds) std::abort();
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

constexpr std::uint32_t sources = 3;
constexpr roce::Region region{.va = 0x1000, .bytes = 0x400, .rkey = 7, .count = 3, .stride = 0x800};

roce::QueuePair queue_pair(std::uint32_t source, std::uint32_t mode) {
    roce::QueuePair qp;
    qp.service = static_cast<roce::Service>(source + 1);
    qp.peer_qp = 0x50 + source;
    if ((mode & 1U) != 0) qp.psn = 0xfffff8;
    qp.path_mtu = (mode & 2U) != 0 ? 256 : 0;
    qp.ack_every = (mode >> 2U) & 3U;
    qp.message_bytes = (mode & 16U) != 0 ? 600 : 0;
    qp.needs_immediate = (mode & 32U) != 0;
    qp.max_message_bytes = 2048;
    qp.region_count = 1;
    qp.regions[0] = region;
    qp.regions[0].backed = (mode & 64U) != 0;
    return qp;
}

/// One byte of shape, one for what the shape needs; mostly what is due.
wire::RocePacket packet_of(Input& in, std::uint32_t source, std::uint32_t expected) {
    const std::uint32_t shape = in.byte();
    const std::uint32_t more = in.byte();
    wire::RocePacket packet;
    packet.place = static_cast<wire::RocePlace>(shape & 3U);
    packet.is_write = (shape & 4U) != 0;
    packet.has_immediate = (shape & 8U) != 0;
    packet.ack_request = (shape & 16U) != 0;
    packet.congestion = (shape & 32U) != 0;
    packet.transport = source == 0   ? wire::RoceTransport::rc
                       : source == 1 ? wire::RoceTransport::uc
                                     : wire::RoceTransport::ud;
    packet.opcode = (more & 128U) != 0 && more < 130 ? 0x16 : 0;
    if ((shape & 64U) != 0) packet.transport = static_cast<wire::RoceTransport>(more % 5);
    const std::uint32_t jump = (shape & 128U) != 0 ? (more < 224 ? more - 112 : more << 16U) : 0;
    packet.psn = (expected + jump) & 0xffffff;
    packet.bytes = packet.place == wire::RocePlace::first || packet.place == wire::RocePlace::middle
                       ? ((more & 64U) != 0 ? 512 : 256)
                       : more * 2;
    packet.immediate = more;
    packet.va = region.va + (more & 63U) * 0x40;
    packet.rkey = (more & 63U) == 63 ? 8 : 7;
    packet.dma_length = packet.place == wire::RocePlace::only ? packet.bytes : (more & 15U) * 128;
    packet.address = packet.address_pair = (more == 77) ? 2 : 1;
    packet.pkey = more == 78 ? 0x7ffe : wire::roce_pkey_default;
    packet.qkey = more == 79 ? 1 : 0;
    return packet;
}

void check(const roce::Ruling& ruling, const wire::RocePacket& packet, const roce::Responder::Status& before,
           const roce::Responder::Status& after, std::uint32_t source, bool start_configured, roce::Room room) {
    const bool reliable = source == 0;
    const bool starts = packet.starts();
    require(reliable || !ruling.answers());
    require(!ruling.answers() || ruling.answer.kind == wire::RoceAnswer::Kind::acknowledge);
    if (reliable) {
        const bool moved = after.psn_known && before.psn_known && after.psn != before.psn;
        // Where nobody said at which PSN the peer starts, it may turn out to be an earlier one.
        const bool started_earlier =
            !start_configured && starts && ((packet.psn - before.psn) & 0x800000U) != 0 &&
            (after.psn == packet.psn || (ruling.accepted() && after.psn == ((packet.psn + 1) & 0xffffff)));
        require(!moved || started_earlier || (ruling.accepted() && after.psn == ((before.psn + 1) & 0xffffff)));
        if (ruling.accepted() && before.psn_known) require(packet.psn == before.psn || started_earlier);
        if (ruling.accepted()) require(room.packet);
        if (ruling.answers() && ruling.sent == AnswerCounter::ack)
            require(ruling.answer.psn == ((after.psn - 1) & 0xffffff) && ruling.answer.msn == after.msn);
        if (ruling.sent == AnswerCounter::nak_sequence) require(ruling.answer.psn == after.psn);
        require(ruling.failed == (ruling.counter == PacketCounter::roce_invalid_request ||
                                  ruling.counter == PacketCounter::roce_access ||
                                  ruling.counter == PacketCounter::roce_operation));
        require(ruling.failed ==
                (after.state == roce::QueuePairState::error && before.state == roce::QueuePairState::ready));
    } else {
        require(after.state == before.state && !ruling.failed);
    }
    if (ruling.accepted() && packet.is_write && starts && packet.dma_length > 0)
        require(packet.rkey == region.rkey && region.holds(packet.va, packet.dma_length));
}

void read_out(assemble::MessageTable& table, wire::PacketTally& packets) {
    while (!table.pending().empty()) {
        const assemble::Descriptor descriptor = table.pending()[0];
        table.consume_pending(1);
        if (descriptor.kind != assemble::Descriptor::Kind::deliver) continue;
        assemble::Message& message = *descriptor.message;
        packets.account(PacketCounter::placed, message.packets);
        table.execute({.kind = assemble::Command::Kind::recycle, .message = &message}, 0);
    }
    table.end_burst();
}

assemble::MessageTable::Config table_config(assemble::EventRoom& event_room) {
    assemble::MessageTable::Config config;
    config.sources = sources;
    config.messages_max = 16;
    config.buffers_max = 60;
    config.event_room = &event_room;
    return config;
}

std::vector<roce::Responder::SourceConfig> responder_sources(std::uint32_t mode) {
    std::vector<roce::Responder::SourceConfig> out;
    for (std::uint32_t source = 0; source < sources; ++source) out.push_back({source, queue_pair(source, mode), true});
    return out;
}

roce::MessageSource message_source(std::uint32_t source, std::uint32_t mode) {
    roce::MessageSource out;
    out.source = source;
    out.number_by = (mode & 32U) != 0 ? roce::NumberBy::immediate : roce::NumberBy::count;
    out.max_message_bytes = 2048;
    return out;
}

/// Frames in memory: with a header of 8 bytes, or without.
std::vector<roce::MessageSource> frame_sources(std::uint32_t mode) {
    wire::FormatOptions options;
    options.declared.name = "frame";
    options.declared.header_bytes = 8;
    options.declared.event = wire::DeclaredField{.offset = 0, .bytes = 8};
    std::vector<roce::MessageSource> out(sources);
    for (std::uint32_t source = 0; source < sources; ++source) {
        out[source].source = source;
        if ((mode & 32U) != 0) continue;
        out[source].number_by = roce::NumberBy::format;
        out[source].format = &wire::described_format();
        out[source].context = wire::described_format().make_context(options);
    }
    return out;
}

roce::InOrderReceiver::Config in_order_config(std::uint32_t mode) {
    roce::InOrderReceiver::Config config;
    config.sources = {message_source(0, mode)};
    config.sources[0].message_bytes = (mode & 128U) != 0 ? 600 : 0;
    config.psn_window = 1024;
    config.timeout_ns = 100;
    return config;
}

roce::Listener::Config listener_config(std::uint32_t mode) {
    roce::Listener::Config config;
    for (std::uint32_t source = 1; source < sources; ++source) config.sources.push_back(message_source(source, mode));
    config.runs_max = 16;
    config.more_connections = 2;
    config.psn_window = 1024;
    config.timeout_ns = 100;
    return config;
}

/// What an rx lcore has for its queue pairs.
class Machine {
public:
    explicit Machine(std::uint32_t mode)
        : table_(table_config(event_room_), packets_, messages_, &release),
          listener_(listener_config(mode), table_, packets_),
          in_order_(in_order_config(mode), table_),
          sources_(responder_sources(mode)),
          frames_(sources_, frame_sources(mode), 100, table_),
          responder_({.sources = sources_}) {}

    void packet(Input& in, std::uint32_t action) {
        const std::uint32_t source = action % sources;
        const roce::Responder::Status before = responder_.status(source);
        wire::RocePacket packet = packet_of(in, source, before.psn);
        auto* buffer = new std::byte[packet.bytes];
        std::memset(buffer, 0, packet.bytes);
        packet.payload = buffer;
        ++given_;
        const wire::Verdict decoded = action < 220   ? wire::ok
                                      : action < 230 ? PacketCounter::malformed_roce_length
                                                     : PacketCounter::not_for_us_roce_request;
        roce::Room room{.packet = table_.has_room(1), .message = true};
        if (source == 0) room.message = table_.messages_free() > 0 && table_.claim_event();
        const std::uint64_t refused = packets_.get(PacketCounter::no_room);
        const roce::Ruling ruling = responder_.rule(source, packet, decoded, room, ++now_);
        check(ruling, packet, before, responder_.status(source), source, sources_[source].queue_pair.psn.has_value(),
              room);
        if (ruling.accepted()) {
            take(source, packet, buffer, ruling);
        } else {
            if (source == 0 && ruling.counter == PacketCounter::duplicate) in_order_.note(source, packet);
            table_.reject(buffer, ruling.counter);
        }
        // An acknowledgement means that there was room.
        require(source != 0 || packets_.get(PacketCounter::no_room) == refused);
        table_.drop_claim();
        if (ruling.failed) forget(source);
    }
    void connect(std::uint32_t source) {
        forget(source);
        responder_.configure(source, sources_[source].queue_pair);
    }
    void disconnect(std::uint32_t source) {
        forget(source);
        responder_.reset(source);
    }
    void wait(std::uint32_t time) {
        now_ += time;
        listener_.expire(now_);
        in_order_.expire(now_);
        frames_.expire(now_);
    }
    void read() { read_out(table_, packets_); }
    void finish() {
        listener_.finish(now_);
        in_order_.finish(now_);
        frames_.finish();
        table_.finish(now_);
        read();
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < core::count_of<PacketCounter>; ++i)
            sum += packets_.get(static_cast<PacketCounter>(i));
        require(sum == given_ && given_back == given_ && packets_.get(PacketCounter::in_flight) == 0);
        require(listener_.runs() + in_order_.collecting() == 0 && table_.buffers_held() == 0 &&
                event_room_.claimed() == 0);
    }

private:
    void take(std::uint32_t source, const wire::RocePacket& packet, void* buffer, const roce::Ruling& ruling) {
        if (ruling.region != nullptr) {
            if (source == 0) in_order_.skip(source, packet, now_);
            frames_.write(ruling, packet, buffer, now_);
        } else if (source == 0) {
            in_order_.add(source, packet, buffer, now_);
        } else {
            listener_.add(source, packet, buffer, now_);
        }
    }
    void forget(std::uint32_t source) {
        if (source == 0)
            in_order_.forget(source, now_);
        else
            listener_.forget(source, now_);
        frames_.forget(source);
    }

    wire::PacketTally packets_;
    assemble::MessageTally messages_;
    assemble::EventRoom event_room_{1, 8};
    assemble::MessageTable table_;
    roce::Listener listener_;
    roce::InOrderReceiver in_order_;
    std::vector<roce::Responder::SourceConfig> sources_;
    roce::FrameMemory frames_;
    roce::Responder responder_;
    core::TimeNs now_ = 0;
    std::uint64_t given_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input in(data, size);
    given_back = 0;
    Machine machine(in.byte());
    while (!in.empty()) {
        const std::uint32_t action = in.byte();
        if (action < 240)
            machine.packet(in, action);
        else if (action < 244)
            machine.disconnect(action % sources);
        else if (action < 250)
            machine.connect(action % sources);
        else if (action < 252)
            machine.wait(in.byte());
        else
            machine.read();
    }
    machine.finish();
    return 0;
}
