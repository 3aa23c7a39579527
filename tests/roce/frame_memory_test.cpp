// Frames that a peer scatters over memory with WRITEs: what is delivered, what is lent, and that nothing leaks.
#include "roce/responder/frame_memory.hpp"
#include "responder_harness.hpp"

namespace weir::roce::test {
namespace {

using C = PacketCounter;

/// A responder with one region of two buffers of 1 KiB, 4 KiB apart, in memory. What is delivered is kept until
/// released.
class Frames {
public:
    explicit Frames(Service service = Service::rc)
        : table_({.messages_max = 64, .buffers_max = 64}, packets, messages, &release),
          sources_({{.source = 0, .queue_pair = pair(service), .ready = true}}),
          frames(sources_, 100, table_),
          responder({.sources = sources_}) {
        released().clear();
    }
    static QueuePair pair(Service service) {
        QueuePair qp = rc_pair();
        qp.service = service;
        qp.needs_immediate = true;
        qp.regions[0] = {.va = 0x10000, .bytes = 1024, .rkey = 5, .count = 2, .stride = 4096, .backed = true};
        return qp;
    }
    C write(P packet, const std::vector<std::byte>& payload) {
        packet.packet.payload = payload.data();
        ++now;
        const Ruling ruling = responder.rule(0, packet.packet, wire::ok, {}, now);
        released().push_back(0);
        auto* buffer = reinterpret_cast<void*>(released().size());
        if (ruling.accepted()) {
            EXPECT_NE(ruling.region, nullptr);
            frames.write(ruling, packet.packet, buffer, now);
        } else {
            table_.reject(buffer, ruling.counter);
        }
        table_.end_burst();
        EXPECT_EQ(released().back(), 1U) << "the payload was copied, so the buffer is back at once";
        return ruling.counter;
    }
    /// Delivered messages since this was asked last; they stay with us.
    std::vector<assemble::Message*> take() {
        std::vector<assemble::Message*> out;
        while (!table_.pending().empty()) {
            const assemble::Descriptor descriptor = table_.pending()[0];
            table_.consume_pending(1);
            if (descriptor.kind == assemble::Descriptor::Kind::deliver) out.push_back(descriptor.message);
        }
        return out;
    }
    void give_back(assemble::Message& message) {
        packets.settle(C::placed, message.packets);
        table_.execute({.kind = assemble::Command::Kind::recycle, .message = &message}, now);
    }

    core::TimeNs now = 0;
    wire::PacketTally packets;
    assemble::MessageTally messages;

private:
    assemble::MessageTable table_;
    std::vector<Responder::SourceConfig> sources_;
    static void release(void** buffers, std::uint32_t count) {
        for (std::uint32_t i = 0; i < count; ++i) ++released()[reinterpret_cast<std::uintptr_t>(buffers[i]) - 1];
    }

public:
    FrameMemory frames;
    Responder responder;
};

std::vector<std::byte> bytes_of(assemble::Message& message) {
    std::vector<std::byte> out(message.total);
    assemble::MessageTable::for_each_ref(
        message, [&](const assemble::FragmentRef& ref) { std::copy_n(ref.data, ref.bytes, out.begin() + ref.offset); });
    return out;
}

P part(std::uint32_t psn, std::uint64_t va, std::uint32_t bytes) {
    return P(only, psn, bytes, true).at(va, 5);
}

TEST(FrameMemory, MakesOneMessageOfWhatIsScatteredOverABuffer) {
    Frames frames;
    const std::vector<std::byte> payload = payload_of(1, 1024);
    const auto piece = [&](std::uint32_t from) {
        return std::vector<std::byte>(payload.begin() + from, payload.begin() + from + 256);
    };
    // In any order, one of them as a message of several packets.
    EXPECT_EQ(frames.write(part(100, 0x10000 + 768, 256), piece(768)), C::in_flight);
    EXPECT_EQ(frames.write(P(first, 101, 256, true).at(0x10000, 5).length(512), piece(0)), C::in_flight);
    EXPECT_EQ(frames.write(P(last, 102, 256, true), piece(256)), C::in_flight);
    EXPECT_TRUE(frames.take().empty()) << "it ends with an immediate";
    EXPECT_EQ(frames.write(part(103, 0x10000 + 512, 256).imm(7), piece(512)), C::in_flight);
    const auto delivered = frames.take();
    ASSERT_EQ(delivered.size(), 1U);
    EXPECT_EQ(delivered[0]->number, 7U);
    EXPECT_TRUE(delivered[0]->complete);
    EXPECT_EQ(delivered[0]->packets, 4U);
    EXPECT_EQ(bytes_of(*delivered[0]), payload);
    frames.give_back(*delivered[0]);
}

TEST(FrameMemory, GivesTheOldestFrameUpWhereRoomIsShort) {
    Frames frames;
    EXPECT_EQ(frames.frames.oldest_ns(), FrameMemory::never);
    const std::vector<std::byte> payload = payload_of(1, 256);
    ASSERT_EQ(frames.write(part(100, 0x10000, 256), payload), C::in_flight);
    const core::TimeNs first_ns = frames.now;
    ASSERT_EQ(frames.write(part(101, 0x11000, 256), payload), C::in_flight);
    EXPECT_EQ(frames.frames.oldest_ns(), first_ns);
    frames.frames.evict_oldest();
    EXPECT_EQ(frames.packets.get(C::unbound), 1U);
    EXPECT_EQ(frames.frames.oldest_ns(), first_ns + 1);
    frames.frames.finish();
    EXPECT_EQ(frames.packets.get(C::unbound), 2U);
}

TEST(FrameMemory, KeepsAFrameUntilItsEventHasLeft) {
    Frames frames;
    const std::vector<std::byte> old = payload_of(1, 256), fresh = payload_of(2, 256);
    ASSERT_EQ(frames.write(part(100, 0x10000, 256).imm(1), old), C::in_flight);
    const auto delivered = frames.take();
    ASSERT_EQ(delivered.size(), 1U);
    EXPECT_FALSE(delivered[0]->complete) << "a quarter of the buffer came";
    EXPECT_EQ(frames.write(part(101, 0x10000, 256).imm(2), fresh), C::roce_not_ready);
    EXPECT_EQ(frames.write(part(101, 0x11000, 256).imm(2), fresh), C::in_flight) << "the other buffer is free";
    std::vector<std::byte> there = bytes_of(*delivered[0]);
    there.resize(256);
    EXPECT_EQ(there, old);
    frames.give_back(*delivered[0]);
    EXPECT_EQ(frames.write(part(102, 0x10000, 256).imm(3), fresh), C::in_flight);
    for (assemble::Message* message : frames.take()) frames.give_back(*message);
}

TEST(FrameMemory, EndsAFrameWithoutAByteAndKeepsTheFirstOfTwoCopies) {
    Frames frames;
    const std::vector<std::byte> one = payload_of(1, 256), two = payload_of(2, 256);
    frames.write(part(100, 0x10000, 256), one);
    frames.write(part(101, 0x10000, 256), two);
    frames.write(part(102, 0x10000 + 128, 256), two);
    EXPECT_EQ(frames.packets.get(C::duplicate), 1U);
    EXPECT_EQ(frames.packets.get(C::conflict), 1U);
    frames.write(part(103, 0x10000, 0).imm(9), {});
    const auto delivered = frames.take();
    ASSERT_EQ(delivered.size(), 1U);
    std::vector<std::byte> there = bytes_of(*delivered[0]);
    there.resize(256);
    EXPECT_EQ(there, one);
    frames.give_back(*delivered[0]);
}

TEST(FrameMemory, GivesUpWhatHasNoEnd) {
    Frames frames;
    const std::vector<std::byte> payload(256);
    frames.write(part(100, 0x10000, 256), payload);
    frames.write(part(101, 0x11000, 256), payload);
    frames.frames.expire(101);
    EXPECT_EQ(frames.packets.get(C::unbound), 1U);
    frames.frames.forget(0);
    EXPECT_EQ(frames.packets.get(C::unbound), 2U);
    EXPECT_EQ(frames.packets.get(C::in_flight), 0U);
    EXPECT_EQ(frames.write(part(102, 0x10000, 256).imm(1), payload), C::in_flight) << "the buffer is free again";
    for (assemble::Message* message : frames.take()) frames.give_back(*message);
}

TEST(FrameMemory, AnUnreliableSenderLeavesGapsAndFindsNoRoomInALentBuffer) {
    Frames frames(Service::uc);
    const std::vector<std::byte> payload(256);
    const auto uc = [](P packet) { return packet.over(wire::RoceTransport::uc); };
    EXPECT_EQ(frames.write(uc(part(100, 0x10000, 256)), payload), C::in_flight);
    EXPECT_EQ(frames.write(uc(part(102, 0x10000 + 512, 256).imm(4)), payload), C::in_flight);
    EXPECT_EQ(frames.write(uc(part(103, 0x10000, 256)), payload), C::no_room);
    const auto delivered = frames.take();
    ASSERT_EQ(delivered.size(), 1U);
    EXPECT_FALSE(delivered[0]->complete);
    EXPECT_EQ(delivered[0]->range_count, 2U);
    frames.give_back(*delivered[0]);
}

}  // namespace
}  // namespace weir::roce::test
