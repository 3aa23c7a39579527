#include "bench/message_assembly.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "bench/packet_buffers.hpp"

namespace {

using weir::bench::MessageAssembly;
using weir::bench::PacketBuffers;
using weir::bench::PacketMaker;
using weir::bench::PacketPlan;

const PacketPlan assembled_plan{.trial = 1, .bytes = 500, .packets = 5};
const PacketPlan of_sources{.trial = 1, .bytes = 500, .packets = 5, .sources = 4};

class Assembling : public testing::TestWithParam<bool> {
protected:
    void add(std::uint64_t sequence) {
        std::byte* const buffer = buffers_.take();
        ASSERT_NE(buffer, nullptr);
        maker_.write_head(sequence, 0, buffer);
        std::ranges::copy(maker_.body(sequence), buffer + PacketPlan::head_bytes);
        assembly_->add({buffer, assembled_plan.bytes, buffer}, now_ += weir::core::ns_per_ms);
        assembly_->end_burst(now_);
    }

    void use(const PacketPlan& plan) {
        maker_ = PacketMaker(plan);
        assembly_ = std::make_unique<MessageAssembly>(plan, 1e6, PacketBuffers::release, GetParam());
    }

    PacketMaker maker_{assembled_plan};
    PacketBuffers buffers_{assembled_plan.bytes, 64, 1};
    std::unique_ptr<MessageAssembly> assembly_ =
        std::make_unique<MessageAssembly>(assembled_plan, 1e6, PacketBuffers::release, GetParam());
    weir::core::TimeNs now_ = 0;
};

TEST_P(Assembling, WholeMessagesAreCountedAndTheirBuffersComeBack) {
    for (std::uint64_t sequence = 0; sequence < 1000; ++sequence) add(sequence);
    assembly_->finish(now_);
    EXPECT_EQ(assembly_->events(), 200U);
    EXPECT_EQ(assembly_->packets(), 1000U);
    EXPECT_EQ(buffers_.available(), 64U);
}

TEST_P(Assembling, AMessageThatLacksAPacketIsNotCounted) {
    for (std::uint64_t sequence = 0; sequence < 100; ++sequence)
        if (sequence != 42) add(sequence);
    assembly_->finish(now_);
    EXPECT_EQ(assembly_->events(), 19U);
    EXPECT_EQ(assembly_->packets(), 95U);
    EXPECT_EQ(buffers_.available(), 64U);
}

TEST_P(Assembling, AnEventIsAMessageOfEachSource) {
    use(of_sources);
    for (std::uint64_t sequence = 0; sequence < 1000; ++sequence)
        if (sequence != 42) add(sequence);  // of the second event
    assembly_->finish(now_);
    EXPECT_EQ(assembly_->events(), 49U);
    EXPECT_EQ(assembly_->packets(), 980U);
    EXPECT_EQ(buffers_.available(), 64U);
}

TEST_P(Assembling, EventsOfManyMoreThanAreRemembered) {
    use(of_sources);
    for (std::uint64_t sequence = 0; sequence < 20'000; ++sequence)
        if (sequence % 100 != 99) add(sequence);  // every fifth event stays short
    assembly_->finish(now_);
    EXPECT_EQ(assembly_->events(), 800U);
}

INSTANTIATE_TEST_SUITE_P(Payload, Assembling, testing::Bool(),
                         [](const auto& info) { return info.param ? "Copied" : "Kept"; });

}  // namespace
