// The responder against real ones: the requests of a capture are given to it, and what it answers is compared with what
// the captured peer answered. Linux soft-RoCE was captured on the receiving machine, so the order of the file is that
// in which it saw the packets, and every answer must be the same: PSN, syndrome and MSN, in the same order. ConnectX
// adapters count credits, which weir does not, have completed messages before the capture began, and answer while other
// packets are already captured: there what is acknowledged must be the same, with an MSN that rises alike.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <tuple>

#include "../shared_data.hpp"
#include "responder_harness.hpp"
#include "wire/network.hpp"

namespace weir::roce::test {
namespace {

struct Said {
    std::uint32_t psn = 0;
    unsigned syndrome = 0;
    std::uint32_t msn = 0;
    bool operator==(const Said&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Said& said) {
    return out << std::hex << "psn " << said.psn << " syndrome " << said.syndrome << std::dec << " msn " << said.msn;
}

/// Who sends to which queue pair.
struct TalkKey {
    std::uint64_t address = 0;
    std::uint32_t qp = 0;
    auto operator<=>(const TalkKey&) const = default;
};
struct Talk {
    std::vector<wire::RocePacket> requests;
    std::vector<wire::Verdict> verdicts;
};
struct Capture {
    std::vector<char> bytes;
    std::map<TalkKey, Talk> talks;  ///< by sender and destination queue pair
    std::map<std::uint64_t, std::map<std::uint32_t, std::vector<Said>>> answers;  ///< by sender and destination
};

/// A little-endian classic pcap file.
Capture load(const std::filesystem::path& file) {
    Capture out;
    std::ifstream in(file, std::ios::binary);
    out.bytes.assign(std::istreambuf_iterator<char>(in), {});
    for (std::size_t at = 24; at + 16 <= out.bytes.size();) {
        std::uint32_t bytes = 0;
        std::memcpy(&bytes, out.bytes.data() + at + 8, 4);
        at += 16;
        wire::Datagram datagram;
        const auto* frame = reinterpret_cast<const std::byte*>(out.bytes.data()) + at;
        at += bytes;
        if (wire::parse_frame(frame, bytes, bytes, datagram) != wire::ok || datagram.dport != wire::roce_port) continue;
        wire::RocePacket packet;
        const wire::Verdict verdict = wire::decode_roce(datagram, true, packet);
        if (verdict == PacketCounter::not_for_us_roce_response && packet.opcode == 0x11)
            out.answers[packet.address][packet.qp].push_back({packet.psn, packet.syndrome, packet.msn});
        if (packet.transport != wire::RoceTransport::rc) continue;
        if (verdict != wire::ok && verdict != PacketCounter::not_for_us_roce_request) continue;
        Talk& talk = out.talks[{packet.address, packet.qp}];
        talk.requests.push_back(packet);
        talk.verdicts.push_back(verdict);
    }
    return out;
}

std::vector<Said> answers_of(const Talk& talk, std::optional<std::uint32_t> psn) {
    QueuePair qp;
    qp.peer_qp = 1;
    qp.psn = psn;
    for (const wire::RocePacket& packet : talk.requests) {
        if (!packet.is_write || packet.dma_length == 0 || qp.region_count > 0) continue;
        qp.regions[qp.region_count++] = {.va = 0, .bytes = ~std::uint64_t{0}, .rkey = packet.rkey, .stride = 1};
    }
    Gate gate(qp);
    std::vector<Said> out;
    for (std::size_t i = 0; i < talk.requests.size(); ++i) {
        const Ruling ruling = gate.send(talk.requests[i], talk.verdicts[i]);
        if (ruling.answers()) out.push_back({ruling.answer.psn, ruling.answer.syndrome, ruling.answer.msn});
    }
    gate.harness.finish(gate.now);
    return out;
}

TEST(ResponderCaptures, SoftRoceAnsweredEveryRequestAsWeirDoes) {
    const std::filesystem::path folder = weir::test::shared_data() / "data" / "rxe";
    if (!std::filesystem::exists(folder)) {
        GTEST_SKIP() << "no captures: " << folder << " is not there";
    }
    std::size_t compared = 0;
    std::size_t naks = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        if (entry.path().extension() != ".pcap") continue;
        SCOPED_TRACE(entry.path().filename().string());
        const Capture capture = load(entry.path());
        for (const auto& [key, talk] : capture.talks) {
            // These files have one queue pair on each side, with the same number.
            std::vector<Said> said;
            for (const auto& [address, by_qp] : capture.answers)
                if (address != key.address && by_qp.contains(key.qp)) said = by_qp.at(key.qp);
            const std::vector<Said> ours = answers_of(talk, talk.requests.front().psn);
            ASSERT_FALSE(said.empty());
            EXPECT_EQ(ours, said);
            compared += ours.size();
            for (const Said& one : ours) naks += one.syndrome == wire::roce_nak_sequence ? 1 : 0;
        }
    }
    EXPECT_GT(compared, 600U);
    EXPECT_GT(naks, 5U);
}

TEST(ResponderCaptures, AdaptersAcknowledgedWhatWeirAcknowledges) {
    const std::filesystem::path folder = weir::test::shared_data() / "data" / "roce";
    if (!std::filesystem::exists(folder)) {
        GTEST_SKIP() << "no captures: " << folder << " is not there";
    }
    std::size_t compared = 0;
    for (const char* file : {"write.pcap", "send.pcap", "nvme-rdma-25echoTo27.pcap", "rc-small.sport-restored.pcap"}) {
        SCOPED_TRACE(file);
        const Capture capture = load(folder / file);
        for (const auto& [key, talk] : capture.talks) {
            const std::vector<Said> ours = answers_of(talk, std::nullopt);
            std::map<std::uint32_t, std::uint32_t> our_msn;
            for (const Said& one : ours) {
                EXPECT_EQ(one.syndrome, wire::roce_ack_unlimited) << one;
                our_msn[one.psn] = one.msn;
            }
            // The answers to these requests are those for their PSNs, from another address.
            std::optional<std::uint32_t> ahead;
            for (const auto& [address, by_qp] : capture.answers) {
                if (address == key.address) continue;
                for (const auto& [qp, all] : by_qp)
                    for (const Said& theirs : all) {
                        const auto found = our_msn.find(theirs.psn);
                        if (found == our_msn.end()) continue;
                        EXPECT_EQ(theirs.syndrome >> 5U, 0U) << theirs;
                        const std::uint32_t difference = (theirs.msn - found->second) & 0xffffff;
                        if (!ahead) ahead = difference;
                        EXPECT_EQ(difference, *ahead) << theirs;
                        ++compared;
                    }
            }
        }
    }
    EXPECT_GT(compared, 30U);
}

}  // namespace
}  // namespace weir::roce::test
