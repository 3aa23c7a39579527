#include "probe_input.hpp"

#include <fmt/ranges.h>

#include <array>
#include <filesystem>
#include <span>

#include "bench/dpdk_device.hpp"
#include "config/device_facts.hpp"
#include "core/clock_ns.hpp"
#include "core/error.hpp"
#include "interrupt.hpp"
#include "port/live_port.hpp"
#include "store/capture/reader.hpp"

namespace weir::app {

namespace {

/// Largest frame that any device brings here.
constexpr std::uint32_t probe_mtu = 9000;

void keep_frame(KeptFrame& keep, std::uint64_t number, std::span<const std::byte> bytes, std::uint32_t wire_bytes) {
    if (keep.number == 0 || number != keep.number) return;
    keep.bytes.assign(bytes.begin(), bytes.end());
    keep.wire_bytes = wire_bytes;
    keep.found = true;
}

/// A burst into the sample; its buffers go back.
void take_burst(std::span<const port::Packet> packets, probe::PacketSample& sample, KeptFrame& keep,
                ProbeInput& input) {
    std::vector<std::byte> whole;
    for (const port::Packet& packet : packets) {
        std::span<const std::byte> bytes(port::frame_of(packet), packet.captured_bytes);
        if (packet.scattered()) {
            whole.clear();
            for (const rte_mbuf* at = packet.mbuf; at != nullptr; at = at->next) {
                const auto* from = rte_pktmbuf_mtod(at, const std::byte*);
                whole.insert(whole.end(), from, from + at->data_len);
            }
            bytes = whole;
        }
        sample.add(bytes, std::max(packet.wire_bytes, static_cast<std::uint32_t>(bytes.size())), packet.time_ns);
        keep_frame(keep, ++input.records, bytes, packet.wire_bytes);
        ::rte_pktmbuf_free(packet.mbuf);
    }
}

}  // namespace

std::string device_of(const std::string& text) {
    if (config::is_pci_address(text) || text.starts_with("net_") || text.starts_with("kernel,")) return text;
    std::error_code error;
    const bool plain = !text.empty() && text.find('/') == std::string::npos && text != "." && text != "..";
    if (plain && std::filesystem::exists("/sys/class/net/" + text, error)) return "kernel,iface=" + text;
    return "";
}

ProbeInput read_capture(const std::string& file, probe::PacketSample& sample, KeptFrame& keep) {
    ProbeInput out;
    store::CaptureReader reader(file);
    store::CaptureReader::Record record;
    // What is asked for may lie behind what is looked at.
    const auto wanted = [&] { return !sample.full() || (keep.number != 0 && !keep.found); };
    while (wanted() && reader.next(record)) {
        sample.add(record.bytes, record.wire_bytes, record.time_ns);
        keep_frame(keep, reader.records(), record.bytes, record.wire_bytes);
    }
    out.records = reader.records();
    out.sample_only = sample.full() && reader.next(record);
    out.cut_off = fmt::format("{}", fmt::join(reader.warnings(), "\n"));
    return out;
}

ProbeInput listen(const std::string& device, const ListenFor& limits, probe::PacketSample& sample, KeptFrame& keep) {
    ProbeInput out;
    // The driver's own frames are 2048 bytes, and it cuts longer ones without a word (pmd-config/net_af_packet.toml).
    const std::string with_room = config::with_frame_room(device, probe_mtu);
    const bench::DpdkPlace place(with_room);
    bench::need_lcore();
    port::BufferPool pool("probe", {.buffers = bench::dpdk_buffers, .room_bytes = bench::room_bytes_max});
    port::LivePortConfig config = bench::dpdk_port_config(with_room, probe_mtu);
    config.name = "probe";
    port::LivePort port(config, {&pool});
    catch_interrupts();
    const core::TimeNs end = core::clock_ns(CLOCK_MONOTONIC) + static_cast<core::TimeNs>(limits.seconds * 1e9);
    std::array<port::Packet, 64> burst;
    while (!interrupted.load() && !sample.full() && core::clock_ns(CLOCK_MONOTONIC) < end &&
           (limits.packets == 0 || out.records < limits.packets)) {
        const auto got = port.receive(0, burst, core::clock_ns(CLOCK_REALTIME), 0).count;
        take_burst(std::span(burst).first(got), sample, keep, out);
    }
    out.sample_only = sample.full();
    return out;
}

}  // namespace weir::app
