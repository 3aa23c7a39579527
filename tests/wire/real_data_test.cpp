// Real captures: every packet to the counter that an independent reading of the file gives. Skipped where they are
// missing; they lie beside the checkout and are not part of the project.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "source_root.hpp"
#include "wire/format.hpp"
#include "wire/roce.hpp"
#include "wire_support.hpp"

namespace weir::wire {
namespace {

using test::Bytes;
namespace fs = std::filesystem;
using Counts = std::map<Verdict, int>;

fs::path data_folder() {
    const char* shared = std::getenv("WEIR_SHARED");
    return (shared != nullptr ? fs::path(shared) : weir::test::source_root().parent_path() / "shared") / "data";
}

/// The frames of a classic little-endian pcap file, or nothing.
std::vector<Bytes> frames_of(const std::string& name) {
    std::ifstream in(data_folder() / name, std::ios::binary);
    const std::string file((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    const auto* at = reinterpret_cast<const std::byte*>(file.data());
    std::vector<Bytes> frames;
    for (std::size_t pos = 24; pos + 16 <= file.size();) {
        const auto bytes = load_le<std::uint32_t>(at + pos + 8);
        frames.emplace_back(at + pos + 16, at + pos + 16 + bytes);
        pos += 16 + bytes;
    }
    return frames;
}

Counts roce_counts(const std::vector<Bytes>& frames) {
    Counts counts;
    for (const Bytes& frame : frames) {
        const auto bytes = static_cast<std::uint32_t>(frame.size());
        Datagram datagram;
        Verdict verdict = parse_frame(frame.data(), bytes, bytes, datagram);
        RocePacket packet;
        if (verdict == ok && datagram.dport == roce_port) verdict = decode_roce(datagram, true, packet);
        ++counts[verdict];
    }
    return counts;
}

Counts format_counts(const std::vector<Bytes>& frames, const char* format, const FormatOptions& options = {}) {
    Counts counts;
    const FormatEntry* entry = find_format(format);
    const FormatContext context = entry->make_context(options);
    for (const Bytes& frame : frames) {
        const auto bytes = static_cast<std::uint32_t>(frame.size());
        Datagram datagram;
        Verdict verdict = parse_frame(frame.data(), bytes, bytes, datagram);
        Fragment fragment;
        if (verdict == ok) entry->decode_burst(context, {&datagram, 1}, &fragment, &verdict);
        ++counts[verdict];
    }
    return counts;
}

#define LOAD_OR_SKIP(frames, name)                     \
    const std::vector<Bytes> frames = frames_of(name); \
    if (frames.empty()) GTEST_SKIP() << "no " << data_folder() / (name)

TEST(RealData, JungfrauFrames) {
    LOAD_OR_SKIP(frames, "jungfrau/jungfrau_3realframes.pcap");
    std::ifstream in(data_folder() / "jungfrau/mod5_raw1.bin", std::ios::binary);
    const std::string raw((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    const FormatEntry* entry = find_format("jungfrau");
    const FormatContext context = entry->make_context({});
    Bytes frame2(context.message_bytes);
    for (const Bytes& frame : frames) {
        const auto bytes = static_cast<std::uint32_t>(frame.size());
        Datagram datagram;
        ASSERT_EQ(parse_frame(frame.data(), bytes, bytes, datagram), ok);
        Fragment fragment;
        Verdict verdict = Verdict::count_;
        entry->decode_burst(context, {&datagram, 1}, &fragment, &verdict);
        ASSERT_EQ(verdict, ok);
        if (fragment.number == 2) std::memcpy(frame2.data() + fragment.offset, fragment.payload, fragment.bytes);
    }
    EXPECT_EQ(frames.size(), 384U);
    EXPECT_TRUE(test::same(frame2.data(), std::as_bytes(std::span(raw))));
}

TEST(RealData, DetectorSimulatorOneInterface) {
    LOAD_OR_SKIP(frames, "sls/jf_1if_short.pcap");
    EXPECT_EQ(format_counts(frames, "jungfrau"), (Counts{{ok, 256}}));
    EXPECT_EQ(format_counts(frames_of("sls/jf_1if_rows256.pcap"), "jungfrau"), (Counts{{ok, 256}}));
    EXPECT_EQ(format_counts(frames_of("sls/jf_2modules_short.pcap"), "jungfrau"), (Counts{{ok, 512}}));
}

TEST(RealData, DetectorSimulatorTwoInterfaces) {
    LOAD_OR_SKIP(frames, "sls/jf_2if_short.pcap");
    EXPECT_EQ(format_counts(frames, "jungfrau", {.interfaces = 2}), (Counts{{ok, 256}}));
}

TEST(RealData, OtherDetectorsAreNotJungfrau) {
    LOAD_OR_SKIP(frames, "sls/moench_1if.pcap");
    EXPECT_EQ(format_counts(frames, "jungfrau"),
              (Counts{{Verdict::malformed_header, static_cast<int>(frames.size())}}));
}

TEST(RealData, FragmentedDatagrams) {
    LOAD_OR_SKIP(frames, "sls/jf_1if_ipfrag_mtu1500.pcap");
    EXPECT_EQ(format_counts(frames, "jungfrau"), (Counts{{Verdict::malformed_ip_fragment, 2 * 128 * 6}}));
}

TEST(RealData, PublishedIcrcVectors) {
    LOAD_OR_SKIP(frames, "roce/vectors.pcap");
    EXPECT_EQ(roce_counts(frames), (Counts{{ok, 2},  // over IPv4 and over IPv6
                                           {Verdict::not_for_us_roce_management, 1},
                                           {Verdict::not_for_us_roce_request, 1}}));
}

TEST(RealData, SoftRoce) {
    LOAD_OR_SKIP(frames, "rxe/rc_send_mtu1024_v4.pcap");
    const auto data_and_acks = [](int data, int acks) {
        return acks == 0 ? Counts{{ok, data}} : Counts{{ok, data}, {Verdict::not_for_us_roce_response, acks}};
    };
    // As the packet counts that came with the captures say.
    EXPECT_EQ(roce_counts(frames), data_and_acks(400, 40));
    EXPECT_EQ(roce_counts(frames_of("rxe/rc_send_oddsizes_mtu1024_v4.pcap")), data_and_acks(136, 56));
    EXPECT_EQ(roce_counts(frames_of("rxe/rc_send_imm_vlan100_mtu1024_v4.pcap")), data_and_acks(400, 40));
    EXPECT_EQ(roce_counts(frames_of("rxe/rc_send_imm_mtu4096_v4.pcap")), data_and_acks(256, 16));
    EXPECT_EQ(roce_counts(frames_of("rxe/rc_write_imm_mtu1024_v4.pcap")), data_and_acks(400, 40));
    EXPECT_EQ(roce_counts(frames_of("rxe/rc_send_loss3_mtu1024_v4.pcap")), data_and_acks(2184, 76));
    EXPECT_EQ(roce_counts(frames_of("rxe/pt_write_RC.pcap")), data_and_acks(1280, 20));
    EXPECT_EQ(roce_counts(frames_of("rxe/uc_send_imm_mtu1024_v4.pcap")), data_and_acks(400, 0));
    EXPECT_EQ(roce_counts(frames_of("rxe/uc_write_imm_mtu4096_v4.pcap")), data_and_acks(256, 0));
    EXPECT_EQ(roce_counts(frames_of("rxe/ud_send_imm_mtu4096_v4.pcap")), data_and_acks(60, 0));
}

TEST(RealData, ForwardedByAMirrorThatRewroteThePort) {
    LOAD_OR_SKIP(frames, "roce/rc-small.pcap");
    EXPECT_EQ(roce_counts(frames), (Counts{{Verdict::malformed_bad_icrc, 21}}));
    EXPECT_EQ(roce_counts(frames_of("roce/rc-small.sport-restored.pcap"))[Verdict::malformed_bad_icrc], 0);
}

TEST(RealData, Adapters) {
    LOAD_OR_SKIP(frames, "roce/rocev2_test.pcap");
    for (const char* name :
         {"roce/rocev2_test.pcap", "roce/nvme-rdma-25echoTo27.pcap", "roce/write.pcap", "roce/send.pcap"}) {
        for (const auto& [verdict, count] : roce_counts(frames_of(name)))
            EXPECT_TRUE(verdict == ok || verdict == Verdict::not_for_us_roce_response ||
                        verdict == Verdict::not_for_us_roce_management)
                << name << ": " << testing::PrintToString(verdict) << " " << count;
    }
}

}  // namespace
}  // namespace weir::wire
