// Genuine soft-RoCE captures: exactly the messages of which every packet is in the file must come out as complete. The
// oracle reads the files on its own: one PSN map per queue pair.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "../shared_data.hpp"
#include "listener_harness.hpp"
#include "wire/network.hpp"

namespace weir::roce::test {
namespace {

using Bytes = std::vector<std::byte>;

/// Frames of a little-endian classic pcap file; that is what these are.
std::vector<Bytes> frames_of(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    const std::vector<char> all{std::istreambuf_iterator<char>(in), {}};
    std::vector<Bytes> out;
    for (std::size_t at = 24; at + 16 <= all.size();) {
        std::uint32_t bytes = 0;
        std::memcpy(&bytes, all.data() + at + 8, 4);
        at += 16;
        if (at + bytes > all.size()) break;
        const auto* begin = reinterpret_cast<const std::byte*>(all.data()) + at;
        out.emplace_back(begin, begin + bytes);
        at += bytes;
    }
    return out;
}

struct Key {
    std::uint32_t dst, qp;
    auto operator<=>(const Key&) const = default;
};
struct Piece {
    unsigned operation;
    Bytes payload;
};
using Truth = std::map<Key, std::multiset<Bytes>>;

unsigned u8(const Bytes& frame, std::size_t at) {
    return std::to_integer<unsigned>(frame.at(at));
}
std::uint32_t be(const Bytes& frame, std::size_t at, unsigned bytes) {
    std::uint32_t out = 0;
    for (unsigned i = 0; i < bytes; ++i) out = out << 8U | u8(frame, at + i);
    return out;
}

Truth truth_of(const std::vector<Bytes>& frames) {
    std::map<Key, std::map<std::int64_t, Piece>> maps;
    std::map<Key, std::int64_t> newest;
    for (const Bytes& frame : frames) {
        std::size_t ip = 14;
        while (be(frame, ip - 2, 2) == 0x8100) ip += 4;
        if (be(frame, ip - 2, 2) != 0x0800) continue;
        const std::size_t bth = ip + 28;
        const std::size_t end = ip + 20 + be(frame, ip + 24, 2);
        const unsigned opcode = u8(frame, bth), operation = opcode & 31;
        const Key key{be(frame, ip + 16, 4), be(frame, bth + 5, 3)};
        if ((opcode >> 5U != 0 && opcode >> 5U != 1 && opcode >> 5U != 3) || operation > 11 || key.qp == 1) continue;
        std::size_t header = 12 + (opcode >> 5U == 3 ? 8 : 0);
        if (operation == 6 || operation >= 10) header += 16;
        if (operation == 3 || operation == 5 || operation == 9 || operation == 11) header += 4;
        const std::uint32_t psn = be(frame, bth + 9, 3);
        auto [at, fresh] = newest.try_emplace(key, (std::int64_t{1} << 40) + psn);
        std::int64_t distance = (psn - at->second) & 0xffffff;
        if (distance >= 0x800000) distance -= 0x1000000;
        const std::int64_t full = at->second + distance;
        at->second = std::max(at->second, full);
        const auto payload_end = frame.begin() + static_cast<std::ptrdiff_t>(end - 4 - (u8(frame, bth + 1) >> 4U & 3U));
        maps[key].try_emplace(
            full, Piece{operation, Bytes(frame.begin() + static_cast<std::ptrdiff_t>(bth + header), payload_end)});
    }
    Truth out;
    for (const auto& [key, pieces] : maps)
        for (auto start = pieces.begin(); start != pieces.end(); ++start) {
            const unsigned first = start->second.operation;
            Bytes message = start->second.payload;
            bool whole = first == 4 || first == 5 || first == 10 || first == 11;
            auto at = start;
            while (!whole && (first == 0 || first == 6)) {
                const std::int64_t expected = at->first + 1;
                if (++at == pieces.end() || at->first != expected) break;
                const unsigned operation = at->second.operation;
                if (operation != 1 && operation != 2 && operation != 3 && operation != 7 && operation != 8 &&
                    operation != 9)
                    break;
                message.insert(message.end(), at->second.payload.begin(), at->second.payload.end());
                whole = operation != 1 && operation != 7;
            }
            if (whole) out[key].insert(message);
        }
    return out;
}

Truth heard(const std::vector<Bytes>& frames, const Truth& truth) {
    Truth out;
    for (const auto& [key, messages] : truth) {
        HarnessConfig config;
        config.sources[0].number_by = NumberBy::arrival;
        Harness harness(config);
        core::TimeNs now = 0;
        for (const Bytes& frame : frames) {
            wire::Datagram datagram;
            wire::RocePacket packet;
            const auto bytes = static_cast<std::uint32_t>(frame.size());
            if (wire::parse_frame(frame.data(), bytes, bytes, datagram) != wire::ok ||
                datagram.dport != wire::roce_port || wire::decode_roce(datagram, true, packet) != wire::ok ||
                Key{datagram.dst, packet.qp} != key)
                continue;
            harness.add(packet, now += 1000);
        }
        harness.finish(now);
        for (const Delivered& got : harness.delivered)
            if (got.complete) out[key].insert(got.bytes);
    }
    return out;
}

TEST(ListenerCaptures, OnlyAndAllWholeMessages) {
    const std::filesystem::path folder = weir::test::shared_data() / "data" / "rxe";
    if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no captures: " << folder << " is not there";
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        const std::string name = entry.path().filename();
        if (entry.path().extension() != ".pcap" || name.find("_v6") != std::string::npos) continue;
        const std::vector<Bytes> frames = frames_of(entry.path());
        const Truth truth = truth_of(frames);
        const Truth got = heard(frames, truth);
        std::size_t count = 0;
        for (const auto& [key, messages] : truth) count += messages.size();
        EXPECT_GT(count, 0U) << name;
        EXPECT_TRUE(got == truth) << name;
        std::cout << name << ": " << count << " messages on " << truth.size() << " queue pairs\n";
        ++files;
    }
    EXPECT_GT(files, 0U);
}

}  // namespace
}  // namespace weir::roce::test
