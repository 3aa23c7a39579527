#include "working_set.hpp"

#include <fmt/format.h>
#include <immintrin.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <numeric>
#include <random>
#include <string>

#include "core/error.hpp"
#include "wire/encode.hpp"
#include "wire/network.hpp"

namespace weir::bench {

namespace {

constexpr std::uint16_t first_port = 50001;
constexpr std::uint32_t first_qp = 0x11;
constexpr std::uint32_t network_header_bytes = 42;

constexpr std::uint32_t ejfat_last_byte = network_header_bytes + 19;

/// As of triggers.
constexpr StreamKind small_packets(std::string_view name, std::uint32_t bytes, std::uint32_t packets) {
    StreamKind kind{name, "ejfat", false, false, bytes, packets, ejfat_last_byte};
    kind.only_if_named = true;
    return kind;
}

constexpr std::array<StreamKind, 12> kinds{{
    // A module on two interfaces: each sends half of a frame.
    {"jungfrau-8k", "jungfrau", false, false, 8192, 64, network_header_bytes + 47},
    // 32 KiB buffers behind the RE header alone, as they leave the load balancer.
    {"ejfat-1k", "ejfat", false, false, 1024, 32, ejfat_last_byte},
    {"roce-write-4k-icrc-ignored", "message", true, false, 4096, 16, network_header_bytes + 11},
    {"roce-write-4k-icrc-checked", "message", true, true, 4096, 16, network_header_bytes + 11},
    // The same bytes as UDP fragments and as reliable WRITEs that are answered.
    {"ejfat-4k", "ejfat", false, false, 4096, 16, ejfat_last_byte},
    {"roce-write-1k-icrc-checked", "message", true, true, 1024, 32, network_header_bytes + 11},
    {"roce-write-1k-responder", "message", true, true, 1024, 32, network_header_bytes + 11, 2, true},
    {"roce-write-4k-responder", "message", true, true, 4096, 16, network_header_bytes + 11, 2, true},
    small_packets("ejfat-256", 256, 64),
    small_packets("ejfat-128", 128, 64),
    small_packets("ejfat-64", 64, 64),
    small_packets("ejfat-64-alone", 64, 1),
}};

constexpr std::array<StreamKind, 3> kinds_of_spead{{
    {"spead-8k", "spead", false, false, 8192, 64, network_header_bytes + 39, 1},
    {"spead-1k", "spead", false, false, 1024, 32, network_header_bytes + 39, 1},
    {"spead-64", "spead", false, false, 64, 64, network_header_bytes + 39, 1},
}};

/// A frame's place: header and payload in a row, beginning at a cache line, as after a device's DMA.
std::size_t stride_of(const StreamKind& kind) noexcept {
    constexpr std::size_t headers_max = 96;
    return (kind.payload_bytes + headers_max + 127) / 128 * 128;
}

}  // namespace

std::span<const StreamKind> stream_kinds() noexcept {
    return kinds;
}

std::span<const StreamKind> spead_kinds() noexcept {
    return kinds_of_spead;
}

steer::Steering steering_of(const StreamKind& kind) {
    std::vector<steer::Rule> rules;
    for (std::uint32_t source = 0; source < kind.sources; ++source) {
        steer::Rule rule;
        rule.key = (kind.roce ? first_qp : first_port) + source;
        rule.source = source;
        rules.push_back(rule);
    }
    return kind.roce ? steer::Steering({}, rules) : steer::Steering(rules, {});
}

stages::StreamRuntime runtime_of(const StreamKind& kind) {
    stages::StreamRuntime stream;
    stream.roce = kind.roce;
    stream.check_icrc = kind.check_icrc;
    stream.format = wire::find_format(kind.format);
    wire::FormatOptions options;
    options.interfaces = 2;
    stream.context = stream.format->make_context(options);
    return stream;
}

FrameMemory::FrameMemory(std::size_t bytes) : bytes_(bytes) {
    constexpr std::size_t huge = std::size_t{2} << 20U;
    bytes_ = (bytes + huge - 1) / huge * huge;
    void* at =
        ::mmap(nullptr, bytes_ + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) throw core::RunError(fmt::format("no memory for {} MiB of frames", bytes_ >> 20U));
    const auto address = (reinterpret_cast<std::uintptr_t>(at) + huge - 1) / huge * huge;
    at_ = static_cast<std::byte*>(at) + (address - reinterpret_cast<std::uintptr_t>(at));
    ::madvise(at_, bytes_, MADV_HUGEPAGE);
    for (std::size_t i = 0; i < bytes_; i += 4096) at_[i] = std::byte{1};
}

FrameMemory::~FrameMemory() {
    ::munmap(at_, bytes_);
}

double FrameMemory::huge_share() const {
    std::ifstream smaps("/proc/self/smaps");
    std::string line;
    bool ours = false;
    while (std::getline(smaps, line)) {
        std::uintptr_t from = 0;
        std::uintptr_t to = 0;
        if (std::sscanf(line.c_str(), "%lx-%lx ", &from, &to) == 2) {
            const auto at = reinterpret_cast<std::uintptr_t>(at_);
            ours = from <= at && at < to;
        } else if (unsigned long kib = 0; ours && std::sscanf(line.c_str(), "AnonHugePages: %lu kB", &kib) == 1) {
            return std::min(1.0, static_cast<double>(kib) * 1024 / static_cast<double>(bytes_));
        }
    }
    return 0;
}

void FrameMemory::evict(std::size_t bytes) const noexcept {
    for (std::size_t at = 0; at < std::min(bytes, bytes_); at += 64) {
#ifdef __CLFLUSHOPT__
        _mm_clflushopt(at_ + at);
#else
        _mm_clflush(at_ + at);
#endif
    }
    _mm_mfence();
}

std::size_t WorkingSet::bytes_needed(const StreamKind& kind, std::uint32_t open_events) noexcept {
    const std::size_t events = std::size_t{open_events} * 3 / 2;
    return std::max<std::size_t>(events, 8) * kind.sources * kind.packets * stride_of(kind);
}

WorkingSet::WorkingSet(const FrameMemory& memory, std::size_t bytes, const StreamKind& kind, const Mix& mix)
    : kind_(kind), message_(kind.message_bytes()) {
    const std::size_t stride = stride_of(kind);
    const std::uint32_t packets_per_event = kind.sources * kind.packets;
    bytes = std::max(bytes, bytes_needed(kind, mix.open_events));
    if (memory.bytes().size() < bytes) throw core::RunError("the frame memory is too small for this case");
    events_ = static_cast<std::uint32_t>(bytes / stride / packets_per_event);
    const std::size_t count = std::size_t{events_} * packets_per_event;
    extent_bytes_ = count * stride;

    std::mt19937_64 random(mix.seed);
    for (std::byte& byte : message_) byte = static_cast<std::byte>(random());

    // When each packet comes: event e begins at e times its packets and is open while `open_events` more begin. In
    // order its packets are spread evenly over that time, shuffled they come at random within it.
    struct Arrival {
        std::uint64_t time = 0;
        std::uint32_t event = 0;
        std::uint32_t packet = 0;
    };
    std::vector<Arrival> arrivals;
    arrivals.reserve(count);
    const std::uint64_t spread = std::uint64_t{mix.open_events} * packets_per_event;
    for (std::uint32_t event = 0; event < events_; ++event)
        for (std::uint32_t packet = 0; packet < packets_per_event; ++packet) {
            const std::uint64_t within = mix.shuffled ? random() % spread : std::uint64_t{packet} * mix.open_events;
            arrivals.push_back({std::uint64_t{event} * packets_per_event + within, event, packet});
        }
    std::ranges::stable_sort(arrivals, {}, &Arrival::time);

    // Places without a pattern, so that no prefetcher can follow from packet to packet: so lie the buffers of a pool
    // that has been in use for a while.
    std::vector<std::uint32_t> places(count);
    std::iota(places.begin(), places.end(), 0U);
    std::ranges::shuffle(places, random);
    frames_.resize(count);
    payload_offset_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
        const std::span<std::byte> out = memory.bytes().subspan(places[i] * stride, stride);
        write(i, arrivals[i].event, arrivals[i].packet % kind.sources, arrivals[i].packet / kind.sources, out);
        frame_bytes_ += frames_[i].bytes;
        payload_bytes_ += kind.payload_bytes;
    }
}

void WorkingSet::write(std::size_t at, std::uint32_t event, std::uint32_t source, std::uint32_t index,
                       std::span<std::byte> out) {
    const std::uint64_t number = std::uint64_t{event} + 1;
    const std::uint32_t offset = index * kind_.payload_bytes;
    const std::span<const std::byte> payload = std::span(message_).subspan(offset, kind_.payload_bytes);
    wire::FrameSpec spec;
    std::size_t bytes = 0;
    if (kind_.roce) {
        spec.dport = wire::roce_port;
        wire::RoceMessage message;
        message.transport = wire::RoceTransport::rc;
        message.is_write = true;
        message.qp = first_qp + source;
        message.psn = (event * kind_.packets) & 0xffffff;
        message.mtu = kind_.payload_bytes;
        message.immediate = static_cast<std::uint32_t>(number);
        bytes = wire::write_roce_frame(spec, wire::roce_packet_of(message, message_, index), out);
        const bool first = index == 0;
        const bool last = index + 1 == kind_.packets;
        payload_offset_[at] = static_cast<std::uint8_t>(network_header_bytes + 12 + (first ? 16 : 0) + (last ? 4 : 0));
    } else {
        spec.dport = static_cast<std::uint16_t>(first_port + source);
        const std::span<std::byte> body = out.subspan(network_header_bytes);
        if (kind_.format == "jungfrau")
            bytes = wire::write_sls({.frame_number = number, .packet_number = index}, payload, body);
        else if (kind_.format == "spead")
            bytes = wire::write_spead({.heap = number, .heap_bytes = kind_.message_bytes(), .offset = offset}, payload,
                                      body);
        else
            bytes = wire::write_ejfat({.data_id = static_cast<std::uint16_t>(source),
                                       .offset = offset,
                                       .total = kind_.message_bytes(),
                                       .event = number},
                                      payload, body);
        payload_offset_[at] = static_cast<std::uint8_t>(network_header_bytes + bytes - payload.size());
        if (bytes > 0) bytes += wire::write_frame_headers(spec, static_cast<std::uint32_t>(bytes), out);
    }
    if (bytes == 0) throw core::RunError("a frame does not fit its place");
    frames_[at] = {out.data(), static_cast<std::uint32_t>(bytes)};
}

}  // namespace weir::bench
