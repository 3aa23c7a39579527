#include "resend/read_ahead.hpp"

#include <chrono>
#include <cstring>

#include "core/one_writer.hpp"
#include "wire/network.hpp"

namespace weir::resend {

namespace {

using wire::Verdict;

/// Of a record that has no whole UDP datagram.
NotSent reason_of(Verdict verdict, bool fragment) noexcept {
    switch (verdict) {
        case Verdict::not_for_us_arp:
            return NotSent::arp;
        case Verdict::not_for_us_icmp:
            return NotSent::icmp;
        case Verdict::not_for_us_ip_protocol:
            return NotSent::other_ip;
        case Verdict::not_for_us_ethertype:
        case Verdict::not_for_us_roce_v1:
            return NotSent::not_ip;
        case Verdict::malformed_truncated:
            return NotSent::truncated;
        case Verdict::malformed_ip_fragment:
            return fragment ? NotSent::ip_fragment : NotSent::malformed;
        default:
            return NotSent::malformed;
    }
}

/// What may be in front of an IP packet, as far as it is there.
std::uint32_t link_bytes(std::span<const std::byte> frame) noexcept {
    constexpr std::uint32_t tags_max = 2;
    std::uint32_t bytes = wire::ethernet_header_bytes;
    for (std::uint32_t tags = 0; tags < tags_max && frame.size() >= bytes + wire::vlan_tag_bytes; ++tags) {
        const auto ethertype = wire::load_be<std::uint16_t>(frame.data() + bytes - 2);
        if (ethertype != wire::ethertype_vlan && ethertype != wire::ethertype_service_vlan) break;
        bytes += wire::vlan_tag_bytes;
    }
    return bytes;
}

}  // namespace

ReadAhead::ReadAhead(const Config& config, FrameRing& ring, const std::atomic<bool>& stop)
    : config_(config), ring_(ring), stop_(stop), source_(config.source) {}

void ReadAhead::start() {
    thread_ = std::thread([this] { run(); });
}

void ReadAhead::join() {
    if (thread_.joinable()) thread_.join();
}

void ReadAhead::run() {
    const auto is_over = [this] { return stop_.load(std::memory_order_relaxed); };
    do {
        stages::CaptureSource::Item item;
        while (!is_over() && source_.next(item))
            if (item.record != nullptr) take(item);
    } while (!is_over() && source_.passes() < config_.loop && source_.next_pass());
    ring_.end();
}

void ReadAhead::take(const stages::CaptureSource::Item& item) {
    core::add(packets_);
    bytes_ += item.record->bytes.size();
    if (config_.payload_only)
        take_payload(item);
    else
        take_frame(item);
}

void ReadAhead::take_frame(const stages::CaptureSource::Item& item) {
    const std::span<const std::byte> frame = item.record->bytes;
    if (frame.size() < item.record->wire_bytes) return not_sent_.add(NotSent::truncated);
    if (frame.size() < wire::ethernet_header_bytes) return not_sent_.add(NotSent::too_short);
    if (frame.size() > config_.mtu + link_bytes(frame)) return not_sent_.add(NotSent::too_long);
    put({item.time_ns, static_cast<std::uint32_t>(frame.size()), 0}, frame.data(), !config_.rewrite.empty());
}

void ReadAhead::take_payload(const stages::CaptureSource::Item& item) {
    const std::span<const std::byte> frame = item.record->bytes;
    wire::Datagram datagram;
    datagram.fragment = false;
    const Verdict verdict =
        wire::parse_frame(frame.data(), static_cast<std::uint32_t>(frame.size()), item.record->wire_bytes, datagram);
    if (verdict != wire::ok) return not_sent_.add(reason_of(verdict, datagram.fragment));
    const std::uint16_t port = config_.port != 0 ? config_.port : config_.rewrite.port_for(datagram.dport);
    put({item.time_ns, datagram.payload_bytes, port}, datagram.payload, false);
}

/// Waits for room.
void ReadAhead::put(const FrameRing::Frame& frame, const std::byte* bytes, bool rewrite) {
    std::byte* place = ring_.reserve(frame);
    while (place == nullptr) {
        if (stop_.load(std::memory_order_relaxed)) return not_sent_.add(NotSent::unsent);
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        place = ring_.reserve(frame);
    }
    std::memcpy(place, bytes, frame.bytes);
    if (rewrite) {
        const wire::Rewritten result = wire::rewrite_frame(config_.rewrite, {place, frame.bytes});
        rewritten_.changed += result.changed ? 1 : 0;
        rewritten_.icrc += result.icrc ? 1 : 0;
        rewritten_.icrc_wrong += result.icrc_wrong ? 1 : 0;
        rewritten_.unreadable += result.unreadable ? 1 : 0;
    }
    ring_.commit();
}

}  // namespace weir::resend
