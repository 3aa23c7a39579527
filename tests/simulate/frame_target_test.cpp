// The targets for real: a file, the loopback interface, and DPDK's net_pcap device. What arrives is compared with what
// a second simulator of the same configuration makes.
#include "simulate/frame_target.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>

#include "core/error.hpp"
#include "frames_of.hpp"
#include "simulate/paced_sender.hpp"
#include "store/capture/reader.hpp"
#include "wire/network.hpp"
#include "wire/roce.hpp"

namespace weir::simulate {
namespace {

using Bytes = std::vector<std::byte>;
const std::atomic<bool> go_on{false};

const SimulatorConfig with_faults{
    .format = "ejfat", .sources = 2, .events = 40, .drop = 0.02, .duplicate = 0.02, .truncate = 0.02, .reorder = 5};

std::vector<Bytes> records_of(const std::string& path) {
    store::CaptureReader reader(path);
    store::CaptureReader::Record record;
    std::vector<Bytes> frames;
    while (reader.next(record)) {
        frames.emplace_back(record.bytes.begin(), record.bytes.end());
    }
    EXPECT_FALSE(reader.cut_off());
    return frames;
}

std::string new_path(const char* name) {
    std::string path = testing::TempDir() + "/weir-" + std::to_string(::getpid()) + "-" + name;
    std::filesystem::remove(path);
    return path;
}

TEST(FrameTarget, CaptureHoldsEveryFrame) {
    const std::string path = new_path("target.pcap");
    Simulator simulator(with_faults);
    const auto target = open_capture_target(path, simulator.frame_bytes_max());
    PacedSender(simulator, *target, {.pace = {}, .live = false, .on_progress = {}}, go_on).send();
    EXPECT_TRUE(records_of(path) == frames_of(with_faults));
    EXPECT_THROW(open_capture_target(path, 100), core::RunError);
    std::filesystem::remove(path);
}

class Socket {
public:
    Socket(int type, int protocol) : socket_(::socket(AF_INET, type | SOCK_NONBLOCK, protocol)) {
        const int room = 16 << 20;
        ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
    }
    ~Socket() { ::close(socket_); }
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;
    [[nodiscard]] bool open() const { return socket_ >= 0; }
    /// Binds to a free port of the loopback interface; 0 if there is none.
    [[nodiscard]] std::uint16_t bind_any() const {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t bytes = sizeof address;
        if (::bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
            ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &bytes) != 0) {
            return 0;
        }
        return ntohs(address.sin_port);
    }
    /// Everything that waits to be received.
    [[nodiscard]] std::vector<Bytes> receive() const {
        std::vector<Bytes> datagrams;
        Bytes buffer(65536);
        for (;;) {
            const ssize_t bytes = ::recv(socket_, buffer.data(), buffer.size(), 0);
            if (bytes < 0) {
                return datagrams;
            }
            datagrams.emplace_back(buffer.begin(), buffer.begin() + bytes);
        }
    }

private:
    int socket_;
};

TEST(FrameTarget, SocketSendsThePayloadOfEveryFrame) {
    Socket receiver(SOCK_DGRAM, 0);
    const std::uint16_t port = receiver.bind_any();
    ASSERT_NE(port, 0);
    SimulatorConfig config = with_faults;
    config.sources = 1;
    config.bytes_max = 3000;  // few enough to wait in an ordinary receive buffer
    UdpTarget target("localhost", port, config, go_on);
    EXPECT_EQ(config.dst_ip, 0x7f000001U);
    EXPECT_EQ(config.src_ip, 0x7f000001U);
    EXPECT_EQ(config.port, port);
    Simulator simulator(config);
    target.prepare(simulator);
    PacedSender(simulator, target, {.pace = {}, .on_progress = {}}, go_on).send();
    std::vector<Bytes> payloads = frames_of(config);
    for (Bytes& frame : payloads) {
        frame.erase(frame.begin(), frame.begin() + simulator.frame_header_bytes());
    }
    EXPECT_TRUE(receiver.receive() == payloads);
}

TEST(FrameTarget, SocketKeepsTheIcrcOfRoceValid) {
    Socket receiver(SOCK_RAW, IPPROTO_UDP);  // sees the IP header as it was sent
    if (!receiver.open()) {
        GTEST_SKIP() << "raw sockets need CAP_NET_RAW";
    }
    SimulatorConfig config{.format = "message",
                           .transport = SimulatedTransport::roce_write,
                           .sources = 2,
                           .events = 5,
                           .bytes_max = 5000,
                           .mtu = 1024};
    UdpTarget target("127.0.0.1", 0, config, go_on);
    Simulator simulator(config);
    target.prepare(simulator);
    PacedSender(simulator, target, {.pace = {}, .on_progress = {}}, go_on).send();
    std::uint64_t good = 0;
    for (const Bytes& packet : receiver.receive()) {
        wire::Datagram datagram;
        const auto bytes = static_cast<std::uint32_t>(packet.size());
        ASSERT_EQ(wire::parse_ipv4(packet.data(), bytes, false, datagram), wire::ok);
        if (datagram.dport != wire::roce_port || datagram.sport != *config.src_port) {
            continue;  // somebody else's
        }
        wire::RocePacket roce;
        EXPECT_EQ(wire::decode_roce(datagram, true, roce), wire::ok);
        ++good;
    }
    EXPECT_EQ(good, simulator.account().total().emitted);
}

TEST(FrameTarget, SocketNamesWhatIsWrong) {
    SimulatorConfig config{.events = 1};
    EXPECT_THROW(UdpTarget("no-such-host.invalid", 0, config, go_on), core::RunError);
    Socket taken(SOCK_DGRAM, 0);
    config.src_port = taken.bind_any();
    EXPECT_THROW(UdpTarget("127.0.0.1", 0, config, go_on), core::RunError);
}

TEST(FrameTarget, SocketSendsTheLongestDatagram) {
    SimulatorConfig config{.format = "message", .events = 3, .bytes_min = 65507, .mtu = 65535};
    UdpTarget target("127.0.0.1", 9, config, go_on);
    Simulator simulator(config);
    target.prepare(simulator);
    EXPECT_EQ(PacedSender(simulator, target, {.pace = {}, .on_progress = {}}, go_on).send().refused, 0U);
}

TEST(FrameTarget, DeviceSendsEveryFrame) {
    const std::string path = new_path("device.pcap");
    Simulator simulator(with_faults);
    {
        const auto target = open_device_target("net_pcap0,tx_pcap=" + path, simulator, go_on);
        PacedSender(simulator, *target, {.pace = {}, .on_progress = {}}, go_on).send();
        EXPECT_EQ(target->lost(), 0U);
    }
    EXPECT_TRUE(records_of(path) == frames_of(with_faults));
    std::filesystem::remove(path);
}

std::string interface_of_mtu_1500() {
    if (!std::filesystem::exists("/sys/class/net")) {
        return {};
    }
    for (const auto& entry : std::filesystem::directory_iterator("/sys/class/net")) {
        std::ifstream file(entry.path() / "mtu");
        int mtu = 0;
        if (file >> mtu && mtu == 1500) {
            return entry.path().filename();
        }
    }
    return {};
}

TEST(FrameTarget, DeviceRefusesFramesThatWouldBeLost) {
    // Refused before EAL starts, which can start only once in a process.
    Simulator too_long({.format = "message", .events = 1, .mtu = 65535});
    EXPECT_THROW(open_device_target("net_null0", too_long, go_on), core::UsageError);
    Simulator jumbo({.format = "message", .events = 1, .mtu = 16000});
    const std::string interface = interface_of_mtu_1500();
    if (interface.empty()) {
        GTEST_SKIP() << "no interface with an MTU of 1500 here";
    }
    EXPECT_THROW(open_device_target("net_af_packet0,iface=" + interface, jumbo, go_on), core::RunError);
}

}  // namespace
}  // namespace weir::simulate
