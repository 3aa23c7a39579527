// Where packets were lost: (account -> places), without a run.
#include "observe/loss_places.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "set_counter.hpp"

namespace {

using namespace weir::observe;
using weir::assemble::EventCounter;
using weir::wire::PacketCounter;
using Known = std::optional<std::uint64_t>;

/// Ten events, and `missing` before the last of them.
NumberReport numbers(std::uint64_t missing) {
    weir::assemble::NumberAccount::Result epoch;
    epoch.counting = weir::assemble::NumberAccount::Counting::counted;
    epoch.stride = 1;
    epoch.seen = 10;
    epoch.missing = missing;
    epoch.last = 9 + missing;
    NumberReport report;
    report.declared = true;
    report.run.epochs.push_back(epoch);
    return report;
}

/// Two sources of 50 packets an event, through one card.
Ledger healthy() {
    Ledger ledger;
    ledger.received = 1000;
    set(ledger, PacketCounter::placed, 1000);
    set(ledger, EventCounter::complete, 10);
    ledger.sources = {{500, 0}, {500, 0}};
    ledger.devices = {{"det0", "pci", 1000, 0, 0}};
    ledger.sequence_known = true;
    ledger.packets_per_event = 100;
    ledger.numbers = numbers(0);
    return ledger;
}

struct Places {
    explicit Places(const Ledger& ledger) : all(loss_places(ledger)) {}
    [[nodiscard]] const LossPlace& way() const { return all[0]; }
    [[nodiscard]] const LossPlace& nic() const { return all[1]; }
    [[nodiscard]] const LossPlace& kernel() const { return all[2]; }
    [[nodiscard]] const LossPlace& weir() const { return all[3]; }
    std::array<LossPlace, 4> all;
};

void expect(const LossPlace& place, Known packets, const char* words) {
    EXPECT_EQ(place.packets, packets) << place.place << ": " << place.evidence;
    EXPECT_NE(place.evidence.find(words), std::string::npos) << place.place << ": " << place.evidence;
    EXPECT_FALSE(place.evidence.ends_with('.'));
}

/// A device behind a kernel's interface loses it from the card's account to the kernel's.
void behind_kernel(Ledger& ledger, Ledger::Before before) {
    ledger.devices[0].driver = "net_af_packet";
    ledger.devices[0].before = before;
    ledger.devices[0].interface = "eth1";
}

TEST(LossPlaces, AreAllKnownToHaveLostNothing) {
    const Places places(healthy());
    expect(places.way(), 0, "by sequence: no packet of an event is missing");
    expect(places.nic(), 0, "port det0 (pci) counts none");
    expect(places.kernel(), 0, "not on the way of these packets");
    expect(places.weir(), 0, "every packet that came has its place");
}

TEST(LossPlaces, WhatNeverCameWasLostOnTheWay) {
    Ledger ledger = healthy();
    ledger.sources[1].missing_packets = 7;
    set(ledger, EventCounter::incomplete_timeout, 1);
    const Places places(ledger);
    expect(places.way(), 7, "by sequence: 7 packets never came");
    expect(places.nic(), 0, "");
    expect(places.weir(), 0, "");
}

TEST(LossPlaces, WholeEventsAreLostOnTheWayToo) {
    Ledger ledger = healthy();
    ledger.numbers = numbers(2);
    ASSERT_EQ(ledger.numbers->why_unknown(), "");
    expect(Places(ledger).way(), 200, "of 2 events among them of which nothing came");
    ledger.numbers = numbers(0);
    EXPECT_TRUE(Places(ledger).way().evidence.ends_with("and no event number"));
    ledger.numbers->sparse = true;
    expect(Places(ledger).way(), {}, "leave numbers out");
}

TEST(LossPlaces, WholeEventsAreKnownSoFarWhileTheRunGoesOn) {
    Ledger ledger = healthy();
    ledger.numbers.reset();
    expect(Places(ledger).way(), {}, "whole events that never came show by their numbers");
    ledger.numbers_so_far = numbers(0);
    expect(Places(ledger).way(), 0, "and no event number up to 9");
    ledger.numbers_so_far = numbers(3);
    expect(Places(ledger).way(), 300, "of 3 events among them of which nothing came");
    ledger.numbers_so_far->run.unlogged = 1;
    expect(Places(ledger).way(), {}, "came faster than they could be followed");
    // Where every packet has a number, that tells more.
    ledger.all_sequenced = true;
    expect(Places(ledger).way(), 0, "every packet carries a number");
}

TEST(LossPlaces, TheCardsQueueIsTheCards) {
    Ledger ledger = healthy();
    ledger.devices[0].missed = 40;
    ledger.device_missed = 40;
    ledger.sources[0].missing_packets = 50;
    const Places places(ledger);
    expect(places.nic(), 40, "port det0 (pci) counts 40 packets for which its receive queue had no room");
    expect(places.way(), 10, "at least: by sequence: 50 packets are missing, and 40 that weir or a device dropped");
    expect(places.kernel(), 0, "");
    // They may be whole events, and what is missing something else.
    ledger.sources[0].missing_packets = 30;
    expect(Places(ledger).way(), {}, "may be all of them");
}

TEST(LossPlaces, TheKernelsQueueAndItsInterfaceAreTheKernels) {
    Ledger ledger = healthy();
    behind_kernel(ledger, Ledger::Before::kernel_and_card);
    ledger.devices[0].missed = 12;
    ledger.devices[0].missed_by_interface = 5;
    ledger.device_missed = 12;
    const Places places(ledger);
    expect(places.kernel(), 12, "had no room for 7 packets; the interface eth1 gave 5 packets to nobody");
    EXPECT_NE(places.kernel().evidence.find("its card's own losses among them"), std::string::npos);
    expect(places.nic(), {}, "ethtool -S eth1");
    behind_kernel(ledger, Ledger::Before::kernel);
    expect(Places(ledger).nic(), 0, "no card is behind eth1");
    EXPECT_EQ(Places(ledger).kernel().evidence.find("card"), std::string::npos);
}

TEST(LossPlaces, WhatADeviceDoesNotCountIsUnknown) {
    Ledger ledger = healthy();
    ledger.devices[0].missed.reset();
    expect(Places(ledger).nic(), {}, "the driver of port det0 (pci) does not count them");
    behind_kernel(ledger, Ledger::Before::kernel);
    expect(Places(ledger).kernel(), {}, "cannot be read");
    // Another one that does count is a lower bound.
    ledger.devices.push_back({"det1", "net_af_packet", 0, 3, 0, 0, Ledger::Before::kernel, "veth0"});
    ledger.device_missed = 3;
    expect(Places(ledger).kernel(), 3, "at least: ");
}

TEST(LossPlaces, WhatWeirHadAndDroppedIsItsOwnAndNotMissingAsWell) {
    Ledger ledger = healthy();
    set(ledger, PacketCounter::late, 10);
    set(ledger, PacketCounter::no_room, 2);
    set(ledger, PacketCounter::duplicate, 99);
    ledger.sources[0].missing_packets = 15;
    Places places(ledger);
    expect(places.weir(), 12, "12 packets came and found no place (late 10, no_room 2)");
    expect(places.way(), 3, "at least: ");
    ledger.sources[0].missing_packets = 12;
    expect(Places(ledger).way(), {}, "may be all of them");
    // Sequence numbers of packets tell a late one from one that never came.
    ledger.all_sequenced = true;
    expect(Places(ledger).way(), 12, "by sequence: 12 packets never came");
    ledger.sources[0].missing_packets = 0;
    expect(Places(ledger).way(), 0, "every packet carries a number");
}

TEST(LossPlaces, ADamagedPacketIsMissingInTheSequenceAndInWeirOnce) {
    Ledger ledger = healthy();
    ledger.all_sequenced = true;
    set(ledger, PacketCounter::malformed_bad_icrc, 4);
    ledger.sources[0].missing_packets = 9;
    const Places places(ledger);
    expect(places.weir(), 4, "malformed.bad_icrc 4");
    expect(places.way(), 5, "at least: ");
}

TEST(LossPlaces, BuffersAreWeirsWhoeverLacksThem) {
    Ledger ledger = healthy();
    ledger.devices[0].no_buffer = 6;
    ledger.device_missed = 6;
    const Places places(ledger);
    expect(places.weir(), 6, "the driver found no free packet buffer for 6 packets");
    expect(places.nic(), 0, "counts none");
}

TEST(LossPlaces, EventsThatAreNotKeptAreLostInWeir) {
    Ledger ledger = healthy();
    set(ledger, EventCounter::dropped_write_error, 2);
    expect(Places(ledger).weir(), 200, "about 200 packets are in 2 closed events that were not kept");
    set(ledger, EventCounter::dropped_write_error, 1);
    expect(Places(ledger).weir(), 100, "1 closed event that was not kept");
    // Rejected on purpose.
    set(ledger, EventCounter::dropped_write_error, 0);
    set(ledger, EventCounter::vetoed, 5);
    expect(Places(ledger).weir(), 0, "");
}

TEST(LossPlaces, TheWayIsUnknownWhereALossWouldNotShow) {
    Ledger ledger = healthy();
    ledger.sequence_known = false;
    expect(Places(ledger).way(), {}, "neither the size of a message is known");
    ledger.sources[0].missing_packets = 3;
    expect(Places(ledger).way(), 3, "at least: by sequence: 3 packets never came; of some sources");
    ledger = healthy();
    set(ledger, EventCounter::dropped_incomplete, 1);
    expect(Places(ledger).way(), {}, "incomplete events lacked that were thrown away");
    ledger = healthy();
    set(ledger, EventCounter::refused_no_room, 1);
    set(ledger, PacketCounter::no_room, 60);
    expect(Places(ledger).way(), {}, "events lacked that were refused");
    ledger = healthy();
    ledger.sources_needed = 1;
    expect(Places(ledger).way(), {}, "an event is whole with 1 of 2 sources");
    ledger.all_sequenced = true;
    expect(Places(ledger).way(), 0, "every packet carries a number");
    ledger = healthy();
    ledger.numbers_unknown_because = "two counters may differ";
    expect(Places(ledger).way(), {}, "two counters may differ");
    ledger = Ledger();
    ledger.devices = {{"det0", "pci", 0, 0, 0}};
    expect(Places(ledger).way(), {}, "no packet has come for a stream");
}

TEST(LossPlaces, WhatMayNotHaveBeenSentIsNotLost) {
    Ledger ledger = healthy();
    ledger.sources[0].missing_packets = 20;
    ledger.sources[0].missing_at_end = ledger.missing_at_end = 20;
    expect(Places(ledger).way(), 0, "20 packets more may not have been sent when the run ended");
}

TEST(LossPlaces, ACaptureSaysNothingOfTheMachineThatTookIt) {
    Ledger ledger = healthy();
    ledger.devices.clear();
    const Places places(ledger);
    expect(places.nic(), {}, "a capture does not say");
    expect(places.kernel(), {}, "a capture does not say");
    expect(places.way(), 0, "what the machine lost that took the capture is part of it");
    EXPECT_TRUE(loss_places_json(places.all)[1]["packets"].is_null());
    EXPECT_EQ(loss_places_json(places.all)[3]["packets"], 0);
    EXPECT_EQ(loss_places_json(places.all)[0]["title"], "on the way");
}

/// Packets are lost at random in all places, and traffic of others in the device; never more is said than was lost.
TEST(LossPlaces, NeverCountAPacketTwice) {
    std::mt19937_64 random(std::random_device{}());
    const auto some = [&] { return random() % 3 == 0 ? random() % 50 : 0; };
    for (int i = 0; i < 2000; ++i) {
        const std::uint64_t way = some();
        const std::uint64_t device = some();
        const std::uint64_t of_others = some();
        const std::uint64_t late = some();
        const std::uint64_t unread = some();
        Ledger ledger = healthy();
        ledger.all_sequenced = random() % 2 == 0;
        const bool kernel = random() % 2 == 0;
        if (kernel) behind_kernel(ledger, Ledger::Before::kernel);
        ledger.devices[0].missed = ledger.device_missed = device + of_others;
        set(ledger, PacketCounter::late, late);
        set(ledger, PacketCounter::ring_full_steer, unread);
        ledger.sources[0].missing_packets = way + device + unread + (ledger.all_sequenced ? 0 : late);
        const Places places(ledger);
        SCOPED_TRACE(testing::Message() << "way " << way << ", device " << device << ", of others " << of_others
                                        << ", late " << late << ", unread " << unread << ": " << places.way().evidence);
        EXPECT_LE(places.way().packets.value_or(0), way);
        for (const Ledger::Loss& loss : ledger.losses())
            if (loss.place == weir::core::Place::way) {
                EXPECT_EQ(places.way().packets, Known(loss.packets));
            }
        const std::uint64_t dropped = ledger.all_came() ? 0 : device + of_others;
        EXPECT_LE(device, dropped);
        EXPECT_EQ(places.nic().packets, Known(kernel ? 0 : dropped));
        EXPECT_EQ(places.kernel().packets, Known(kernel ? dropped : 0));
        EXPECT_EQ(places.weir().packets, Known(late + unread));
        if (places.way().packets == Known(0)) {
            EXPECT_EQ(way, 0U);
        }
    }
}

}  // namespace
