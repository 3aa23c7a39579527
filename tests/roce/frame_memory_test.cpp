// Frames that a peer scatters over memory with WRITEs: what is delivered, what is lent, and that nothing leaks.
#include "roce/responder/frame_memory.hpp"

#include <cstring>
#include <span>

#include "core/error.hpp"
#include "responder_harness.hpp"

namespace weir::roce::test {
namespace {

using C = PacketCounter;

/// A responder with one region of two buffers of 1 KiB, 4 KiB apart, in memory. What is delivered is kept until
/// released.
class Frames {
public:
    explicit Frames(Service service = Service::rc, const MessageSource& source = {})
        : table_({.messages_max = 64, .buffers_max = 64}, packets, messages, &release),
          sources_({{.source = 0, .queue_pair = pair(service, source), .ready = true}}),
          frames(sources_, {&source, 1}, 100, table_),
          responder({.sources = sources_}) {
        released().clear();
    }
    static QueuePair pair(Service service, const MessageSource& source) {
        QueuePair qp = rc_pair();
        qp.service = service;
        qp.needs_immediate = source.number_by == NumberBy::immediate;
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
        packets.account(C::placed, message.packets);
        table_.execute({.kind = assemble::Command::Kind::recycle, .message = &message}, now);
    }

    /// Takes all room there is for packets, and gives it back.
    void fill() {
        other_ = table_.open_unbound(0, now);
        while (table_.has_room(1)) {
            released().push_back(0);
            static_cast<void>(table_.append(*other_, reinterpret_cast<void*>(released().size()), nullptr, 0, 0, now));
        }
    }
    void empty() {
        table_.abandon(*other_, C::unsteered);
        table_.end_burst();
    }

    core::TimeNs now = 0;
    wire::PacketTally packets;
    assemble::MessageTally messages;

private:
    assemble::Message* other_ = nullptr;
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

/// A sender that nothing is repeated for, and that writes a buffer in four packets, the last one with the immediate.
class Unreliable : public Frames {
public:
    Unreliable() : Frames(Service::uc) {}
    /// Packet `index` of the frame `number` into a buffer; all its bytes are the frame's number.
    C send(std::uint32_t number, std::uint32_t index, std::uint64_t buffer = 0x10000) {
        const std::vector<std::byte> payload(256, static_cast<std::byte>(number));
        P packet = part(100 + 4 * number + index, buffer + std::uint64_t{256} * index, 256);
        packet.over(wire::RoceTransport::uc);
        if (index == 3) packet.imm(number);
        return write(packet, payload);
    }
    void send_whole(std::uint32_t number) {
        for (std::uint32_t index = 0; index < 4; ++index) EXPECT_EQ(send(number, index), C::in_flight);
        const auto delivered = take();
        ASSERT_EQ(delivered.size(), 1U);
        EXPECT_TRUE(delivered[0]->complete);
        give_back(*delivered[0]);
    }
    /// What is delivered now is one frame of this number and of so many packets of its own.
    void expect_frame(std::uint32_t number, std::uint32_t packets) {
        const auto delivered = take();
        ASSERT_EQ(delivered.size(), 1U);
        EXPECT_EQ(delivered[0]->number, number);
        EXPECT_EQ(delivered[0]->packets, packets);
        EXPECT_EQ(delivered[0]->complete, packets == 4);
        assemble::MessageTable::for_each_ref(*delivered[0], [&](const assemble::FragmentRef& ref) {
            for (const std::byte byte : std::span(ref.data, ref.bytes)) EXPECT_EQ(byte, static_cast<std::byte>(number));
        });
        give_back(*delivered[0]);
    }
};

TEST(FrameMemory, AnUnreliableSenderLeavesGapsAndFindsNoRoomInALentBuffer) {
    Unreliable frames;
    frames.send_whole(0);
    EXPECT_EQ(frames.send(1, 0), C::in_flight);
    EXPECT_EQ(frames.send(1, 3), C::in_flight);
    const auto delivered = frames.take();
    ASSERT_EQ(delivered.size(), 1U);
    EXPECT_FALSE(delivered[0]->complete);
    EXPECT_EQ(delivered[0]->range_count, 2U);
    EXPECT_EQ(frames.send(2, 0), C::no_room);
    frames.give_back(*delivered[0]);
}

TEST(FrameMemory, AFrameWithALossIsNotBelievedBeforeAWholeOneHasCome) {
    Unreliable frames;
    frames.send(0, 0);
    frames.send(0, 2);
    frames.send(0, 3);
    EXPECT_TRUE(frames.take().empty());
    EXPECT_EQ(frames.packets.get(C::unbound), 3U);
    frames.send_whole(1);
    for (const std::uint32_t index : {0U, 2U, 3U}) frames.send(2, index);
    frames.expect_frame(2, 3);
}

TEST(FrameMemory, TheNextFrameIsNotMixedWithOneThatLostItsEnd) {
    for (const std::uint32_t last : {0U, 1U, 2U})  // of the first frame
        for (std::uint32_t begin = 0; begin < 4; ++begin) {
            Unreliable frames;
            frames.send_whole(0);
            for (std::uint32_t index = 0; index <= last; ++index) frames.send(1, index);
            for (std::uint32_t index = begin; index < 4; ++index) frames.send(2, index);
            if (begin <= last) {
                // Its bytes are there already, so another frame has begun. It lacks what filled the holes of the other.
                frames.expect_frame(2, 4 - begin);
            } else {
                EXPECT_TRUE(frames.take().empty()) << "two halves of two frames: " << last << ", " << begin;
            }
            frames.frames.finish();
            EXPECT_EQ(frames.packets.get(C::in_flight), 0U);
        }
}

TEST(FrameMemory, AFrameThatFillsTheHolesOfAnotherGoesWithIt) {
    Unreliable frames;
    frames.send_whole(0);
    frames.send(1, 1);
    frames.send(1, 2);  // and the end is lost
    EXPECT_EQ(frames.send(2, 0), C::in_flight);
    frames.send(2, 1);  // is there: all before is of another frame, as far as anybody knows
    EXPECT_EQ(frames.packets.get(C::unbound), 3U);
    frames.send(2, 2);
    frames.send(2, 3);
    frames.expect_frame(2, 3);
}

TEST(FrameMemory, WhatIsWrittenTwiceWithoutALossIsNoNewFrame) {
    Frames frames(Service::uc);
    const std::vector<std::byte> payload(256);
    const auto uc = [](P packet) { return packet.over(wire::RoceTransport::uc); };
    frames.write(uc(part(100, 0x10000, 256)), payload);
    frames.write(uc(part(101, 0x10000, 256)), payload);
    EXPECT_EQ(frames.packets.get(C::duplicate), 1U);
    frames.write(uc(part(102, 0x10000 + 256, 256).imm(1)), payload);
    const auto delivered = frames.take();
    ASSERT_EQ(delivered.size(), 1U);
    frames.give_back(*delivered[0]);
}

TEST(FrameMemory, AnEndForWhichThereIsNoRoomIsNoneOfTheNextFrame) {
    Unreliable frames;
    frames.send_whole(0);
    for (std::uint32_t index = 0; index < 3; ++index) frames.send(1, index);
    frames.fill();
    EXPECT_EQ(frames.send(1, 3), C::in_flight) << "the responder has no say";
    EXPECT_EQ(frames.packets.get(C::no_room), 1U);
    EXPECT_EQ(frames.packets.get(C::unbound), 3U) << "the frame has lost its end";
    frames.empty();
    for (std::uint32_t index = 0; index < 4; ++index) frames.send(2, index);
    frames.expect_frame(2, 4);
    // The same for a packet in the middle: the frame has a hole, and is known for one frame.
    frames.send(3, 0);
    frames.fill();
    frames.send(3, 1);
    frames.empty();
    frames.send(3, 2);
    frames.send(3, 3);
    frames.expect_frame(3, 3);
}

TEST(FrameMemory, APacketForWhichThereIsNoRoomIsALoss) {
    Unreliable frames;  // of which no whole frame has come
    frames.send(0, 0);
    frames.fill();
    frames.send(0, 1);
    frames.empty();
    frames.send(0, 2);
    frames.send(0, 3);
    EXPECT_TRUE(frames.take().empty());
    EXPECT_EQ(frames.packets.get(C::unbound), 3U);
}

TEST(FrameMemory, AnotherSenderMayCutItsFramesInAnotherWay) {
    Unreliable frames;
    frames.send_whole(0);
    frames.frames.forget(0);
    for (const std::uint32_t index : {0U, 2U, 3U}) frames.send(1, index);
    EXPECT_TRUE(frames.take().empty()) << "nobody knows yet how many packets a frame of this one has";
    EXPECT_EQ(frames.packets.get(C::unbound), 3U);
}

TEST(FrameMemory, OtherMessagesOfTheQueuePairAreNoLosses) {
    Unreliable frames;
    frames.send(0, 0);
    frames.frames.pass_by(0);
    const std::vector<std::byte> payload(256);
    for (std::uint32_t index = 1; index < 4; ++index) {
        P packet = part(101 + index, 0x10000 + std::uint64_t{256} * index, 256);
        packet.over(wire::RoceTransport::uc);
        if (index == 3) packet.imm(5);
        EXPECT_EQ(frames.write(packet, payload), C::in_flight);
    }
    const auto delivered = frames.take();
    ASSERT_EQ(delivered.size(), 1U);
    EXPECT_TRUE(delivered[0]->complete);
    frames.give_back(*delivered[0]);
}

/// A format of 8 bytes of header, a number, and 1016 bytes that belong to it.
MessageSource with_header() {
    wire::DeclaredSpec spec;
    spec.name = "small";
    spec.header_bytes = 8;
    spec.event = {.offset = 0, .bytes = 8};
    spec.total_bytes = 1016;
    const wire::FormatEntry& format = wire::described_format();
    wire::FormatOptions options;
    options.declared = spec;
    return {.number_by = NumberBy::format, .format = &format, .context = format.make_context(options)};
}

TEST(FrameMemory, TakesTheHeaderOutOfAFrame) {
    const MessageSource source = with_header();
    for (const std::uint64_t number : {std::uint64_t{7}, (std::uint64_t{3} << 32U) + 7}) {
        Frames frames(Service::rc, source);
        std::vector<std::byte> all = payload_of(1, 1024);
        std::memcpy(all.data(), &number, 8);
        const auto piece = [&](std::uint32_t from, std::uint32_t to) {
            return std::vector<std::byte>(all.begin() + from, all.begin() + to);
        };
        for (std::uint32_t at = 8; at < 1024; at += 254)
            EXPECT_EQ(frames.write(part(100 + at / 254, 0x10000 + at, 254), piece(at, at + 254)), C::in_flight);
        EXPECT_EQ(frames.write(part(104, 0x10000, 8).imm(7), piece(0, 8)), C::in_flight);
        const auto delivered = frames.take();
        ASSERT_EQ(delivered.size(), 1U);
        EXPECT_EQ(delivered[0]->number, number);
        EXPECT_TRUE(delivered[0]->complete);
        EXPECT_EQ(delivered[0]->total, 1016U);
        EXPECT_EQ(delivered[0]->range_count, 1U);
        EXPECT_EQ(delivered[0]->meta_bytes, 8U);
        EXPECT_EQ(bytes_of(*delivered[0]), piece(8, 1024));
        const assemble::FragmentRef* first = nullptr;
        assemble::MessageTable::for_each_ref(*delivered[0], [&](const assemble::FragmentRef& ref) {
            if (ref.bytes > 0 && ref.offset == 0) first = &ref;
        });
        ASSERT_NE(first, nullptr);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first->data) % 64, 0U) << "pixels begin with a cache line";
        frames.give_back(*delivered[0]);
    }
}

TEST(FrameMemory, AFrameWithoutItsOwnHeaderIsNone) {
    const MessageSource source = with_header();
    Frames frames(Service::rc, source);
    frames.write(part(100, 0x10000 + 8, 254), std::vector<std::byte>(254));
    frames.write(part(101, 0x10000 + 500, 0).imm(7), {});
    EXPECT_EQ(frames.packets.get(C::unbound), 2U);
    frames.write(part(102, 0x10000, 8).imm(7), std::vector<std::byte>(8, std::byte{1}));
    EXPECT_EQ(frames.packets.get(C::conflict), 1U) << "the header has another number";
    EXPECT_TRUE(frames.take().empty());
    EXPECT_THROW(Frames(Service::rc, MessageSource{.number_by = NumberBy::format}), core::UsageError);
}

}  // namespace
}  // namespace weir::roce::test
