// What is said when nothing comes for any stream.
#include "observe/seen.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace {

using namespace weir::observe;
using weir::wire::PacketCounter;

struct Scene {
    Ledger ledger;
    Observations seen;

    Scene() { seen.ports = {{"det0", "pci", 0, 0, 9000, 0, 0, true, 100000}}; }
    void count(PacketCounter counter, std::uint64_t packets) {
        ledger.packets[static_cast<std::size_t>(counter)] = packets;
        ledger.received += packets;
        seen.ports[0].received = ledger.received;
    }
};

TEST(Seen, IsOnlyAskedForWhenNothingCameForAStream) {
    Scene scene;
    EXPECT_TRUE(nothing_for_streams(scene.ledger, scene.seen));
    scene.count(PacketCounter::not_for_us_arp, 3);
    scene.count(PacketCounter::unsteered, 3);
    EXPECT_TRUE(nothing_for_streams(scene.ledger, scene.seen));
    scene.count(PacketCounter::malformed_header, 1);  // wrong, but it was for a stream
    EXPECT_FALSE(nothing_for_streams(scene.ledger, scene.seen));
    Scene replay;
    replay.seen.replay = true;
    EXPECT_FALSE(nothing_for_streams(replay.ledger, replay.seen));
}

TEST(Seen, NamesLinkAndSpeedAndSilence) {
    Scene scene;
    EXPECT_EQ(seen_text(scene.ledger, scene.seen), "port det0 (pci): link up at 100 Gb/s, 0 packets");
    EXPECT_EQ(seen_words(scene.ledger, scene.seen), "no packet at all");
    scene.seen.ports[0].link_up = false;
    EXPECT_EQ(seen_text(scene.ledger, scene.seen), "port det0 (pci): the link is DOWN, 0 packets");
    EXPECT_EQ(seen_words(scene.ledger, scene.seen), "link DOWN");
}

TEST(Seen, NamesArpOtherPortsAndLosses) {
    Scene scene;
    scene.count(PacketCounter::not_for_us_arp, 3);
    scene.count(PacketCounter::not_for_us_ethertype, 4);
    scene.count(PacketCounter::unsteered, 20);
    scene.seen.ports[0].answered = 2;
    scene.seen.ports[0].missed = 5;
    scene.ledger.unmatched.list = {{"UDP port 9 from 10.0.0.1", 17, ""},
                                   {"queue pair 7 from 10.0.0.2", 2, ""},
                                   {"UDP port 8 from 10.0.0.3", 1, ""},
                                   {"UDP port 7 from 10.0.0.4", 1, ""}};
    EXPECT_EQ(seen_text(scene.ledger, scene.seen),
              "port det0 (pci): link up at 100 Gb/s, 27 packets, 5 lost by the device, 2 answers to ARP and ping; of "
              "all packets: "
              "3 ARP, 4 not IP (LLDP, spanning tree), 20 to no stream: UDP port 9 from 10.0.0.1 (17), queue pair 7 "
              "from 10.0.0.2 "
              "(2), UDP port 8 from 10.0.0.3 (1) and 1 more");
    EXPECT_EQ(seen_words(scene.ledger, scene.seen), "3 ARP, 20 to no stream (UDP port 9 from 10.0.0.1)");
    const nlohmann::json json = seen_json(scene.ledger, scene.seen);
    EXPECT_EQ(json["unsteered"], 20);
    EXPECT_EQ(json["other_senders"][0]["to"], "UDP port 9 from 10.0.0.1");
    EXPECT_EQ(json["ports"][0]["link_mbps"], 100000);
    EXPECT_EQ(json["nothing_for_streams"], true);
}

TEST(Seen, NamesThePortsThatAreDownAmongSeveral) {
    Scene scene;
    scene.seen.ports.push_back({"det1", "net_memif", 0, 0, 9000, 7, 0, false, 0});
    EXPECT_EQ(seen_text(scene.ledger, scene.seen),
              "port det0 (pci): link up at 100 Gb/s, 0 packets; port det1 (net_memif): the link is DOWN, 7 packets");
    EXPECT_EQ(seen_words(scene.ledger, scene.seen), "link of det1 DOWN");
}

}  // namespace
