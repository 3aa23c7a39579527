// Sends EJFAT events as fast as a DPDK device takes them, for scripts/bench link: link_sender DEVICE FRAME_BYTES
// SECONDS. The frames are made once and sent again with new event numbers, so the sender costs eight bytes per packet
// and what the device's copy costs. For devices that have copied a frame when rte_eth_tx_burst returns (memif). Prints
// one line of JSON, then keeps the device until standard input ends, because some drivers forget what they received
// when their peer leaves.
#include <fmt/format.h>
#include <rte_byteorder.h>
#include <rte_ethdev.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "port/buffers.hpp"
#include "port/eal.hpp"
#include "port/live_port.hpp"
#include "wire/encode.hpp"
#include "wire/network.hpp"

namespace {

using weir::core::RunError;

constexpr std::uint16_t first_port = 50001;
constexpr std::uint32_t sources = 2;
constexpr std::uint32_t packets = 32;  // of a message
constexpr std::uint32_t events = 4;    // that there are frames for
constexpr std::uint32_t header_bytes = 14 + 20 + 8;
constexpr std::uint32_t format_bytes = 20;  // the RE header, which ends with the event number, big-endian
constexpr std::uint16_t burst = 32;
constexpr auto patience = std::chrono::seconds(10);

void make_frame(rte_mbuf& mbuf, std::uint32_t frame_bytes, std::uint32_t source, std::uint32_t index) {
    const std::uint32_t payload_bytes = frame_bytes - header_bytes - format_bytes;
    const std::vector<std::byte> payload(payload_bytes, static_cast<std::byte>(source + index));
    const std::span<std::byte> out(rte_pktmbuf_mtod(&mbuf, std::byte*), frame_bytes);
    weir::wire::FrameSpec spec;
    spec.dport = static_cast<std::uint16_t>(first_port + source);
    const std::size_t bytes = weir::wire::write_ejfat({.data_id = static_cast<std::uint16_t>(source),
                                                       .offset = index * payload_bytes,
                                                       .total = packets * payload_bytes,
                                                       .event = 0},
                                                      payload, out.subspan(header_bytes));
    const std::size_t header = weir::wire::write_frame_headers(spec, static_cast<std::uint32_t>(bytes), out);
    if (bytes == 0 || header + bytes != frame_bytes) throw RunError("a frame could not be made");
    mbuf.data_len = static_cast<std::uint16_t>(frame_bytes);
    mbuf.pkt_len = frame_bytes;
}

class Sender {
public:
    Sender(weir::port::LivePort& port, weir::port::BufferPool& pool, std::uint32_t frame_bytes) : port_(port) {
        for (std::uint32_t event = 0; event < events; ++event)
            for (std::uint32_t index = 0; index < packets; ++index)
                for (std::uint32_t source = 0; source < sources; ++source) {
                    rte_mbuf* mbuf = pool.allocate();
                    if (mbuf == nullptr) throw RunError("too few buffers");
                    make_frame(*mbuf, frame_bytes, source, index);
                    frames_.push_back(mbuf);
                }
    }

    /// Sends the four events under the next four numbers. False when the device took nothing for a while.
    bool send_round() {
        for (std::size_t first = 0; first < frames_.size(); first += burst) {
            for (std::size_t i = first; i < first + burst; ++i) {
                const std::uint64_t number = rte_cpu_to_be_64(next_ + i / (packets * sources));
                std::memcpy(rte_pktmbuf_mtod_offset(frames_[i], std::byte*, header_bytes + format_bytes - 8), &number,
                            8);
                rte_mbuf_refcnt_set(frames_[i], 2);  // the driver gives one back
            }
            if (!send_burst(first)) return false;
        }
        next_ += events;
        return true;
    }

    [[nodiscard]] std::uint64_t sent_packets() const { return (next_ - 1) * packets * sources; }
    [[nodiscard]] std::uint64_t sent_events() const { return next_ - 1; }

private:
    bool send_burst(std::size_t first) {
        std::uint16_t sent = 0;
        auto since = std::chrono::steady_clock::time_point{};
        while (sent < burst) {
            const std::uint16_t count = ::rte_eth_tx_burst(port_.id(), 0, frames_.data() + first + sent,
                                                           static_cast<std::uint16_t>(burst - sent));
            sent = static_cast<std::uint16_t>(sent + count);
            if (count > 0) {
                since = {};
            } else if (since == std::chrono::steady_clock::time_point{}) {
                since = std::chrono::steady_clock::now();
            } else if (std::chrono::steady_clock::now() - since > patience) {
                return false;
            }
        }
        return true;
    }

    weir::port::LivePort& port_;
    std::vector<rte_mbuf*> frames_;
    std::uint64_t next_ = 1;
};

int send(const std::string& device, std::uint32_t frame_bytes, double seconds) {
    const weir::port::BufferPoolConfig buffers{8192, 10240};
    weir::port::EalConfig eal;
    eal.memory_bytes = weir::port::BufferPool::memory_bytes(buffers) + (64U << 20U);
    eal.pin = false;
    weir::port::start_eal(eal);
    weir::port::BufferPool pool("send", buffers);
    const std::size_t comma = device.find(',');
    weir::port::LivePortConfig config;
    config.name = "send";
    config.device = device.substr(0, comma);
    config.args = comma == std::string::npos ? "" : device.substr(comma + 1);
    config.mtu = 1500;
    weir::port::LivePort port(config, {&pool});
    Sender sender(port, pool, frame_bytes);
    // The first round waits until the peer has come, and shows it the first numbers; it is not timed.
    if (!sender.send_round()) throw RunError("nobody takes the packets");
    const std::uint64_t before = sender.sent_packets();
    const auto start = std::chrono::steady_clock::now();
    std::chrono::duration<double> taken{};
    while (taken.count() < seconds) {
        if (!sender.send_round()) throw RunError("the peer stopped taking packets");
        taken = std::chrono::steady_clock::now() - start;
    }
    fmt::print("{{\"packets\": {}, \"events\": {}, \"timed_packets\": {}, \"seconds\": {:.6f}}}\n",
               sender.sent_packets(), sender.sent_events(), sender.sent_packets() - before, taken.count());
    std::fflush(stdout);
    while (std::getchar() != EOF) {
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        fmt::print(stderr, "usage: link_sender DEVICE FRAME_BYTES SECONDS\n");
        return 2;
    }
    try {
        return send(argv[1], static_cast<std::uint32_t>(std::stoul(argv[2])), std::stod(argv[3]));
    } catch (const std::exception& error) {
        fmt::print(stderr, "link_sender: {}\n", error.what());
        return 1;
    }
}
