// The pcapng files that weir writes: block by block against the draft, read back by libpcap, and what is left of them
// when the disk is full.
#include <gtest/gtest.h>
#include <pcap/pcap.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "core/error.hpp"
#include "store/pcapng_file.hpp"
#include "store/run_path.hpp"
#include "temporary_directory.hpp"

namespace weir::store {
namespace {

using FileBytes = std::vector<std::byte>;

FileBytes contents(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

template <class T>
T at(const FileBytes& bytes, std::size_t offset) {
    T value{};
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

/// A block taken apart by the draft's rules: both lengths agree, options end with opt_endofopt, padding is zero.
struct Block {
    std::uint32_t type = 0;
    FileBytes body;                                   ///< without options
    std::multimap<std::uint16_t, FileBytes> options;  ///< in order of codes

    [[nodiscard]] std::string text(std::uint16_t code) const {
        const auto found = options.find(code);
        if (found == options.end()) return "(none)";
        return {reinterpret_cast<const char*>(found->second.data()), found->second.size()};
    }
    [[nodiscard]] std::uint64_t number(std::uint16_t code) const {
        const auto found = options.find(code);
        return found != options.end() && found->second.size() == 8 ? at<std::uint64_t>(found->second, 0) : UINT64_MAX;
    }
};

std::vector<Block> blocks_of(const FileBytes& file) {
    std::vector<Block> blocks;
    for (std::size_t begin = 0; begin < file.size();) {
        Block block;
        block.type = at<std::uint32_t>(file, begin);
        const auto bytes = at<std::uint32_t>(file, begin + 4);
        EXPECT_EQ(bytes % 4, 0U);
        EXPECT_LE(begin + bytes, file.size());
        EXPECT_EQ(at<std::uint32_t>(file, begin + bytes - 4), bytes);
        const std::map<std::uint32_t, std::size_t> fixed{{0x0a0d0d0a, 16}, {1, 8}, {5, 12}, {6, 20}};
        std::size_t body = fixed.at(block.type);
        if (block.type == 6) body += (at<std::uint32_t>(file, begin + 8 + 12) + 3) / 4 * 4;
        const auto from = file.begin() + static_cast<std::ptrdiff_t>(begin);
        block.body.assign(from + 8, from + 8 + static_cast<std::ptrdiff_t>(body));
        std::size_t option = begin + 8 + body;
        for (;;) {
            const auto code = at<std::uint16_t>(file, option);
            const auto length = at<std::uint16_t>(file, option + 2);
            if (code == 0) {
                EXPECT_EQ(length, 0U);
                EXPECT_EQ(option + 4, begin + bytes - 4);
                break;
            }
            const auto value = file.begin() + static_cast<std::ptrdiff_t>(option) + 4;
            block.options.emplace(code, FileBytes(value, value + length));
            for (std::size_t pad = length; pad % 4 != 0; ++pad) EXPECT_EQ(file[option + 4 + pad], std::byte{0});
            option += 4 + (length + 3U) / 4 * 4;
            EXPECT_LT(option, begin + bytes - 4);
            if (option >= begin + bytes - 4) break;
        }
        blocks.push_back(block);
        begin += bytes;
    }
    return blocks;
}

void expect_heads(const std::vector<Block>& blocks) {
    EXPECT_EQ(at<std::uint32_t>(blocks[0].body, 0), 0x1a2b3c4dU);
    EXPECT_EQ(at<std::uint16_t>(blocks[0].body, 4), 1U);
    EXPECT_EQ(at<std::int64_t>(blocks[0].body, 8), -1);
    EXPECT_EQ(blocks[0].text(2), "a machine");
    EXPECT_EQ(blocks[0].text(3), "(none)");
    EXPECT_EQ(blocks[0].text(4), "weir 1");
    EXPECT_EQ(blocks[0].options.count(1), 2U);
    EXPECT_EQ(at<std::uint16_t>(blocks[1].body, 0), 1U);  // Ethernet
    EXPECT_EQ(at<std::uint32_t>(blocks[1].body, 4), 96U);
    EXPECT_EQ(blocks[1].text(2), "det0");
    EXPECT_EQ(blocks[1].text(6), std::string("\2\0\0\0\0\7", 6));
    EXPECT_EQ(blocks[1].number(8), 100'000'000'000U);
    EXPECT_EQ(blocks[1].text(9), "\t");  // 10^-9
    EXPECT_EQ(blocks[2].text(2), "det1");
    EXPECT_EQ(blocks[2].options.count(8), 0U);
}

void expect_contents(const std::vector<Block>& blocks, const std::string& comment) {
    EXPECT_EQ(at<std::uint32_t>(blocks[3].body, 0), 1U);
    const std::uint64_t time =
        std::uint64_t{at<std::uint32_t>(blocks[3].body, 4)} << 32U | at<std::uint32_t>(blocks[3].body, 8);
    EXPECT_EQ(time, 1'700'000'000'123'456'789U);
    EXPECT_EQ(at<std::uint32_t>(blocks[3].body, 12), 61U);
    EXPECT_EQ(at<std::uint32_t>(blocks[3].body, 16), 9000U);
    EXPECT_EQ(blocks[3].body[20 + 60], std::byte{0xab});
    EXPECT_EQ(blocks[3].body[20 + 61], std::byte{0});
    EXPECT_EQ(blocks[3].text(1), comment);
    EXPECT_EQ(blocks[3].text(2), std::string("\1\0\0\0", 4));  // inbound
    EXPECT_EQ(blocks[3].number(4), 5'000'000'000U);
    EXPECT_EQ(blocks[3].text(6), std::string("\3\0\0\0", 4));
    EXPECT_EQ(at<std::uint64_t>(blocks[4].body, 4), 0U);  // before 1970
    EXPECT_EQ(blocks[4].options.count(4), 0U);
    EXPECT_EQ(at<std::uint32_t>(blocks[5].body, 4), 1U);  // the upper half first
    EXPECT_EQ(at<std::uint32_t>(blocks[5].body, 8), 7U);
    EXPECT_EQ(blocks[5].number(4), 10U);
    EXPECT_EQ(blocks[5].number(7), 4U);
    EXPECT_EQ(blocks[5].number(8), 6U);
    EXPECT_EQ(blocks[5].options.count(5), 0U);
}

class PcapngFileTest : public testing::Test {
protected:
    [[nodiscard]] std::filesystem::path path(const char* name) const { return folder_ / name; }

    static FileBytes frame(std::size_t bytes, int fill) { return FileBytes(bytes, static_cast<std::byte>(fill)); }
    static PcapngPacket packet(const FileBytes& bytes, core::TimeNs time_ns) {
        PcapngPacket packet;
        packet.bytes = bytes;
        packet.time_ns = time_ns;
        packet.wire_bytes = static_cast<std::uint32_t>(bytes.size());
        return packet;
    }
    static std::vector<PcapngInterface> one_interface() {
        std::vector<PcapngInterface> interfaces(1);
        interfaces[0].name = "det0";
        return interfaces;
    }

    const weir::test::TemporaryDirectory folder_;
};

TEST_F(PcapngFileTest, HasTheBlocksOfTheDraft) {
    PcapngSection section;
    section.hardware = "a machine";
    section.application = "weir 1";
    section.comments = {"why it was saved", "and more"};
    std::vector<PcapngInterface> interfaces(2);
    interfaces[0].name = "det0";
    interfaces[0].description = "net_af_packet0,iface=det0";
    interfaces[0].bits_per_second = 100'000'000'000;
    interfaces[0].snap_bytes = 96;
    interfaces[0].mac = {2, 0, 0, 0, 0, 7};
    interfaces[1].name = "det1";
    interfaces[1].snap_bytes = 96;
    const FileBytes bytes = frame(61, 0xab);
    const std::vector<std::string> comments{"event 17 incomplete: timeout, source 3 misses 2 packets"};
    {
        PcapngFile file(path("a.pcapng"), section, interfaces);
        PcapngPacket with_all = packet(bytes, 1'700'000'000'123'456'789);
        with_all.wire_bytes = 9000;
        with_all.interface = 1;
        with_all.queue = 3;
        with_all.dropped = 5'000'000'000;
        with_all.comments = comments;
        file.put(with_all);
        file.put(packet({}, -5));
        PcapngStatistics statistics;
        statistics.interface = 1;
        statistics.time_ns = (std::int64_t{1} << 32U) + 7;
        statistics.start_ns = 1;
        statistics.received = 10;
        statistics.capture_dropped = 4;
        statistics.delivered = 6;
        file.put(statistics);
        EXPECT_FALSE(std::filesystem::exists(path("a.pcapng")));
        EXPECT_TRUE(std::filesystem::exists(path(".a.pcapng.part")));
        file.close();
    }
    EXPECT_FALSE(std::filesystem::exists(path(".a.pcapng.part")));
    const std::vector<Block> blocks = blocks_of(contents(path("a.pcapng")));
    ASSERT_EQ(blocks.size(), 6U);
    expect_heads(blocks);
    expect_contents(blocks, comments[0]);
}

TEST_F(PcapngFileTest, LibpcapReadsWhatWasPut) {
    std::vector<FileBytes> frames;
    for (int i = 0; i < 700; ++i) frames.push_back(frame(60 + static_cast<std::size_t>(i) * 12 % 9001, i));
    PcapngFile file(path("b.pcapng"), {}, one_interface());
    for (std::size_t i = 0; i < frames.size(); ++i)
        file.put(packet(frames[i], static_cast<core::TimeNs>(i) * 1'000'000'001));
    EXPECT_GT(file.written_bytes(), PcapngFile::flush_bytes);  // more than one flush
    file.close();
    char problem[PCAP_ERRBUF_SIZE];
    pcap_t* const reader =
        pcap_open_offline_with_tstamp_precision(path("b.pcapng").c_str(), PCAP_TSTAMP_PRECISION_NANO, problem);
    ASSERT_NE(reader, nullptr) << problem;
    pcap_pkthdr* head = nullptr;
    const unsigned char* data = nullptr;
    std::size_t count = 0;
    while (pcap_next_ex(reader, &head, &data) == 1) {
        ASSERT_LT(count, frames.size());
        EXPECT_EQ(head->ts.tv_sec, static_cast<long>(count));
        EXPECT_EQ(head->ts.tv_usec, static_cast<long>(count));
        ASSERT_EQ(head->caplen, frames[count].size());
        EXPECT_EQ(std::memcmp(data, frames[count].data(), head->caplen), 0);
        ++count;
    }
    pcap_close(reader);
    EXPECT_EQ(count, frames.size());
}

TEST_F(PcapngFileTest, CutsCommentsThatNobodyReads) {
    PcapngSection section;
    section.comments = {std::string(pcapng_text_bytes_max - 1, 'x') + "\xc3\xa4 and more"};
    PcapngFile file(path("c.pcapng"), section, one_interface());
    file.close();
    EXPECT_EQ(blocks_of(contents(path("c.pcapng")))[0].text(1), std::string(pcapng_text_bytes_max - 1, 'x'));
}

TEST_F(PcapngFileTest, RefusesNamesThatAreTaken) {
    { std::ofstream taken(path("d.pcapng")); }
    EXPECT_THROW(PcapngFile(path("d.pcapng"), {}, one_interface()), core::RunError);
    { std::ofstream taken(hidden_path(path("e.pcapng"))); }
    EXPECT_THROW(PcapngFile(path("e.pcapng"), {}, one_interface()), core::RunError);
    EXPECT_THROW(PcapngFile(path("no/such/folder.pcapng"), {}, one_interface()), core::RunError);
}

TEST_F(PcapngFileTest, OfAFileThatMayNotGrowWhatIsWholeIsLeft) {
    // The limit of the process stands for a full disk.
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    const auto handler = ::signal(SIGXFSZ, SIG_IGN);
    rlimit small = before;
    small.rlim_cur = 2'500'000;
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    const FileBytes bytes = frame(8000, 1);
    PcapngFile file(path("f.pcapng"), {}, one_interface());
    std::uint64_t put = 0;
    EXPECT_THROW(
        {
            for (; put < 1000; ++put) file.put(packet(bytes, 1));
        },
        core::RunError);
    EXPECT_EQ(file.packets(), put);
    EXPECT_GT(file.lost_packets(), 0U);
    file.close();
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    ::signal(SIGXFSZ, handler);
    EXPECT_EQ(blocks_of(contents(path("f.pcapng"))).size(), 2 + put - file.lost_packets());
}

}  // namespace
}  // namespace weir::store
