// Which packet comes when: events, sources in turn, faults, reordering, and the account. simulator_frames.cpp writes
// them.
#include "simulate/simulator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "core/doing.hpp"
#include "core/error.hpp"
#include "wire/ejfat/ejfat.hpp"
#include "wire/ess/ess.hpp"
#include "wire/network.hpp"

namespace weir::port {

namespace {

// Offsets of the seed, so that one decision says nothing about another.
enum Salt : std::uint64_t {
    drop_salt = 1000,
    duplicate_salt,
    truncate_salt,
    cut_salt,
    place_salt,
    size_salt,
    corrupt_salt,
    bit_salt
};

constexpr std::uint32_t reorder_max = 1U << 20;
constexpr std::uint32_t message_bytes_limit = 1U << 30;
constexpr std::uint32_t sources_max = 4096;

void require(bool holds, std::string text) {
    if (!holds) {
        throw core::UsageError(std::move(text));
    }
}

/// Over udp, a message is one datagram.
bool is_datagram(const SimulatorConfig& config) {
    return config.transport == SimulatedTransport::udp &&
           (config.format == SimulatedFormat::message || config.format == SimulatedFormat::ess);
}

/// What --mtu leaves for the message of one datagram.
std::uint32_t datagram_room(const SimulatorConfig& config) {
    const std::uint32_t header_bytes = config.format == SimulatedFormat::ess ? wire::Ess::header_bytes_v0 : 0;
    return config.mtu - wire::ipv4_header_bytes - wire::udp_header_bytes - header_bytes;
}

/// The detectors' own defaults, where they have one: the load balancer's 0x4C42, the event formation units', MeerKAT's.
std::uint32_t default_port(SimulatedFormat format) {
    switch (format) {
        case SimulatedFormat::ejfat:
            return 19522;
        case SimulatedFormat::ess:
            return 9000;
        case SimulatedFormat::spead:
            return 7148;
        default:
            return 50001;  // slsDetectorPackage's
    }
}

void check_probability(const char* option, double value) {
    require(value >= 0 && value <= 1, fmt::format("--{} {}: a probability from 0 to 1 is accepted", option, value));
}

void check_mtu(const SimulatorConfig& config, const wire::FormatContext& context) {
    if (config.transport != SimulatedTransport::udp) {
        const bool known =
            config.mtu >= 256 && config.mtu <= wire::roce_mtu_max && (config.mtu & (config.mtu - 1)) == 0;
        require(known, fmt::format("--mtu {}: a RoCE path MTU is 256, 512, 1024, 2048 or 4096", config.mtu));
        return;
    }
    require(config.mtu >= 576 && config.mtu <= 65535, fmt::format("--mtu {}: 576 to 65535 is accepted", config.mtu));
    const std::uint32_t packet_bytes =
        wire::ipv4_header_bytes + wire::udp_header_bytes + context.header_bytes + context.payload_bytes;
    require((!is_sls_detector(config.format) && config.format != SimulatedFormat::dune) || config.mtu >= packet_bytes,
            fmt::format("--mtu {}: a packet of this detector has {} bytes and is never fragmented", config.mtu,
                        packet_bytes));
}

std::uint32_t ejfat_header_bytes(const SimulatorConfig& config) noexcept {
    if (config.format != SimulatedFormat::ejfat) return 0;
    return wire::Ejfat::re_header_bytes + (config.lb_version != 0 ? wire::Ejfat::lb_header_bytes : 0);
}

void check_roce(const SimulatorConfig& config) {
    const bool roce = config.transport != SimulatedTransport::udp;
    require(roce || config.service == wire::RoceTransport::uc,
            "--service belongs to --transport roce-send or roce-write");
    require(roce || !config.ipv6, "--src-ip, --dst-ip: IPv6 addresses go with --transport roce-send or roce-write");
    require(roce || config.corrupt == 0,
            "--corrupt goes with --transport roce-send or roce-write, whose packets carry a checksum of everything");
    if (config.service != wire::RoceTransport::ud) return;
    require(config.transport == SimulatedTransport::roce_send, "--service ud goes with --transport roce-send");
    const std::uint32_t header_bytes = ejfat_header_bytes(config);
    require(config.bytes_max + header_bytes <= config.mtu,
            fmt::format("--bytes {}: a message of --service ud is one packet, and --mtu {} leaves room for {} bytes",
                        config.bytes_max, config.mtu, config.mtu - header_bytes));
}

void check_sizes(const SimulatorConfig& config) {
    require(config.bytes_min <= config.bytes_max,
            fmt::format("--bytes-min {} is more than --bytes {}", config.bytes_min, config.bytes_max));
    require(config.bytes_max <= message_bytes_limit,
            fmt::format("--bytes {}: up to {} is accepted", config.bytes_max, message_bytes_limit));
    const std::uint32_t room = datagram_room(config);
    require(!is_datagram(config) || config.bytes_max <= room,
            fmt::format("--bytes {}: a message over udp is one datagram, and --mtu {} leaves room for {} bytes",
                        config.bytes_max, config.mtu, room));
}

void check(const SimulatorConfig& config, const wire::FormatContext& context) {
    require(config.sources >= 1 && config.sources <= sources_max,
            fmt::format("--sources {}: 1 to {} is accepted", config.sources, sources_max));
    require(config.interfaces == 1 || config.interfaces == 2,
            fmt::format("--interfaces {}: a module has 1 or 2", config.interfaces));
    require(is_module(config.format) || config.interfaces == 1,
            "--interfaces belongs to --format jungfrau and --format moench");
    require(config.sources % config.interfaces == 0,
            fmt::format("--sources {} with --interfaces 2: a source is a UDP port, so modules come in pairs of sources",
                        config.sources));
    require(config.format != SimulatedFormat::eiger || config.first_event != 0,
            "--first-event 0: EIGER counts its frames from 1");
    const bool roce = config.transport != SimulatedTransport::udp;
    require(!roce || config.format == SimulatedFormat::message || config.format == SimulatedFormat::ejfat,
            "--format jungfrau, moench, eiger, dune, ess, spead and declared ones go with --transport udp; for RoCE "
            "use message or ejfat");
    require(config.format != SimulatedFormat::ess || config.bytes_min > 0,
            "--bytes-min 0: an ESS packet without data is a heartbeat, which is no message");
    require(!roce || !config.one_port, "--one-port belongs to --transport udp");
    require(config.lb_version == 0 || config.format == SimulatedFormat::ejfat, "--lb belongs to --format ejfat");
    require(config.lb_version == 0 || config.lb_version == 2 || config.lb_version == 3,
            fmt::format("--lb {}: load balancer header version 2 or 3 is accepted", config.lb_version));
    require(!roce || config.port == wire::roce_port, "--port: RoCEv2 has one port, 4791; --qp sets the queue pairs");
    require(config.port >= 1 && config.port + (roce || config.one_port ? 0 : config.sources - 1) <= 65535,
            fmt::format("--port {}: {} sources need the ports up to {}", config.port, config.sources,
                        std::uint64_t{config.port} + config.sources - 1));
    constexpr std::uint32_t queue_pair_end = 1U << 24;
    require(config.queue_pair >= 2 && config.queue_pair + config.sources <= queue_pair_end,
            fmt::format("--qp {}: 2 to {} is accepted", config.queue_pair, queue_pair_end - config.sources));
    require(config.first_psn < queue_pair_end, fmt::format("--first-psn {}: 24 bits are accepted", config.first_psn));
    require(!config.vlan || *config.vlan < 4096, "--vlan: 0 to 4095 is accepted");
    require(config.reorder <= reorder_max,
            fmt::format("--reorder {}: up to {} is accepted", config.reorder, reorder_max));
    check_probability("drop", config.drop);
    check_probability("duplicate", config.duplicate);
    check_probability("truncate", config.truncate);
    check_probability("corrupt", config.corrupt);
    require(config.drop < 1 || config.events != 0, "--drop 1 without --events would go on for ever and send nothing");
    check_mtu(config, context);
    check_sizes(config);
    check_roce(config);
    if (config.format == SimulatedFormat::declared) check_declared(config, context);
}

}  // namespace

SimulatorAccount::Source SimulatorAccount::total() const noexcept {
    Source sum;
    for (const Source& source : sources) {
        sum.generated += source.generated;
        sum.dropped += source.dropped;
        sum.duplicated += source.duplicated;
        sum.truncated += source.truncated;
        sum.corrupted += source.corrupted;
        sum.emitted += source.emitted;
        sum.frame_bytes += source.frame_bytes;
    }
    return sum;
}

void Simulator::complete_config() {
    const bool roce = config_.transport != SimulatedTransport::udp;
    if (config_.mtu == 0) {
        config_.mtu = roce ? 4096 : 9000;
    }
    if (config_.port == 0) {
        config_.port = roce ? wire::roce_port : default_port(config_.format);
    }
    if (config_.bytes_max == 0) {
        constexpr std::uint32_t usual_bytes = 20000;
        const bool declared = config_.format == SimulatedFormat::declared && is_one_packet(config_.declared);
        const bool datagram = (is_datagram(config_) || declared) && !roce && config_.mtu >= 576;
        const std::uint32_t headers = wire::ipv4_header_bytes + wire::udp_header_bytes + format_header_bytes();
        config_.bytes_max = datagram ? config_.mtu - std::min(headers, config_.mtu) : usual_bytes;
        if (config_.service == wire::RoceTransport::ud && config_.mtu >= 256)
            config_.bytes_max = config_.mtu - ejfat_header_bytes(config_);
        config_.bytes_max = std::max(config_.bytes_min, config_.bytes_max);
    }
}

Simulator::Simulator(const SimulatorConfig& config) : config_(config) {
    const core::Doing doing("the data to send");
    // An impossible number of interfaces is refused below, for all formats in the same words.
    if (config.interfaces == 1 || (config.interfaces == 2 && is_module(config.format)))
        context_ = simulated_context(config);
    complete_config();
    check(config_, context_);
    const std::uint32_t udp_room = config_.mtu - wire::ipv4_header_bytes - wire::udp_header_bytes;
    header_bytes_ = wire::frame_header_bytes(frame_spec(0));
    if (config_.transport != SimulatedTransport::udp) {
        packet_bytes_ = config_.mtu;
        constexpr std::uint32_t roce_extra_bytes = wire::roce_bth_bytes + 16 + 4 + 3 + wire::roce_icrc_bytes;  // RETH
        frame_bytes_max_ = header_bytes_ + roce_extra_bytes + packet_bytes_;
        scratch_.resize(packet_bytes_);
    } else {
        packet_bytes_ = context_.payload_bytes != 0 ? context_.payload_bytes : udp_room - format_header_bytes();
        frame_bytes_max_ = header_bytes_ + format_header_bytes() + packet_bytes_;
    }
    if (config_.format == SimulatedFormat::jungfrau) {
        images_.emplace(config_.sources / config_.interfaces, config_.seed);
    } else {
        content_.emplace(config_.seed);
    }
    account_.sources.resize(config_.sources);
    event_packets_.resize(config_.sources);
    psn_.assign(config_.sources, config_.first_psn);
    source_ = config_.sources;  // no event is open yet
    waiting_.reserve(std::size_t{config_.reorder} + 4);
}

std::uint32_t Simulator::endpoint(std::uint32_t source) const noexcept {
    if (config_.transport != SimulatedTransport::udp) {
        return config_.queue_pair + source;
    }
    return config_.port + (config_.one_port ? 0 : source);
}

std::uint32_t Simulator::message_bytes(std::uint64_t event, std::uint32_t source) const noexcept {
    if (context_.message_bytes != 0) {
        return context_.message_bytes;
    }
    const std::uint64_t sizes = std::uint64_t{config_.bytes_max} - config_.bytes_min + 1;
    return config_.bytes_min + static_cast<std::uint32_t>(mix(mix(config_.seed + size_salt, event), source) % sizes);
}

std::uint32_t Simulator::packet_count(std::uint32_t message_bytes) const noexcept {
    const bool roce = config_.transport != SimulatedTransport::udp;
    const std::uint32_t bytes = message_bytes + (roce ? format_header_bytes() : 0);
    return std::max(1U, (bytes + packet_bytes_ - 1) / packet_bytes_);
}

void Simulator::begin_event() noexcept {
    const std::uint64_t event = config_.first_event + event_;
    ++event_;
    ++account_.events;
    packet_ = 0;
    source_ = 0;
    event_emitted_ = 0;
    event_lost_ = 0;
    event_packets_max_ = 0;
    for (std::uint32_t source = 0; source < config_.sources; ++source) {
        const std::uint32_t bytes = message_bytes(event, source);
        account_.message_bytes += bytes;
        event_packets_[source] = packet_count(bytes);
        event_packets_max_ = std::max(event_packets_max_, event_packets_[source]);
    }
}

void Simulator::end_event() noexcept {
    ++(event_lost_ == 0 ? account_.events_whole : account_.events_damaged);
    account_.events_empty += event_emitted_ == 0 ? 1 : 0;
}

bool Simulator::plan_next() noexcept {
    // Sources take turns, packet by packet, as modules that are triggered together do. Those with fewer packets fall
    // out.
    while (source_ < config_.sources && packet_ >= event_packets_[source_]) {
        ++source_;
    }
    if (source_ == config_.sources) {
        ++packet_;
        source_ = 0;
        if (event_ == 0 || packet_ >= event_packets_max_) {
            if (event_ != 0 && packet_ == event_packets_max_) {
                end_event();
            }
            if (stopped_ || (config_.events != 0 && event_ == config_.events)) {
                source_ = config_.sources;
                packet_ = event_packets_max_;
                return false;
            }
            begin_event();
        }
        return true;
    }
    const double progress = static_cast<double>(packet_) / event_packets_max_;
    std::uint32_t& psn = psn_[source_];
    plan_faults({.place = 0,
                 .sequence = 0,
                 .event = config_.first_event + event_ - 1,
                 .source = source_,
                 .packet = packet_,
                 .psn = psn,
                 .truncated = false,
                 .corrupted = false,
                 .due_events = static_cast<double>(event_ - 1) + progress});
    ++psn;
    ++source_;
    return true;
}

void Simulator::plan_faults(const Planned& packet) noexcept {
    SimulatorAccount::Source& account = account_.sources[packet.source];
    const std::uint64_t salt = mix(packet.source, account.generated++);
    if (chance(config_.seed + drop_salt, salt) < config_.drop) {
        ++account.dropped;
        ++event_lost_;
        return;
    }
    const bool has_payload = config_.format != SimulatedFormat::message ||
                             config_.transport != SimulatedTransport::udp ||
                             message_bytes(packet.event, packet.source) != 0;
    Planned first = packet;
    first.truncated = has_payload && chance(config_.seed + truncate_salt, salt) < config_.truncate;
    first.corrupted = chance(config_.seed + corrupt_salt, salt) < config_.corrupt;
    const bool again = chance(config_.seed + duplicate_salt, salt) < config_.duplicate;
    account.truncated += first.truncated ? 1 : 0;
    account.duplicated += again ? 1 : 0;
    account.corrupted += first.corrupted ? 1 : 0;
    ++((first.truncated || first.corrupted) && !again ? event_lost_ : event_emitted_);
    enqueue(first);
    if (again) {
        enqueue(packet);
    }
}

void Simulator::enqueue(Planned packet) noexcept {
    packet.sequence = sequence_++;
    packet.place = packet.sequence + mix(config_.seed + place_salt, packet.sequence) % (config_.reorder + 1ULL);
    waiting_.push_back(packet);
    std::push_heap(waiting_.begin(), waiting_.end(), Later{});
}

bool Simulator::next(std::span<std::byte> out, Frame& frame) noexcept {
    assert(out.size() >= frame_bytes_max_);
    // The first in line may go as soon as nothing that is planned later can get a place before it.
    while ((waiting_.empty() || waiting_.front().place >= sequence_) && plan_next()) {
    }
    if (waiting_.empty()) {
        return false;
    }
    std::pop_heap(waiting_.begin(), waiting_.end(), Later{});
    const Planned packet = waiting_.back();
    waiting_.pop_back();
    std::size_t bytes = write(packet, out);
    if (packet.corrupted) flip_bit(out.first(bytes), header_bytes_, mix(config_.seed + bit_salt, packet.sequence));
    if (packet.truncated) {
        bytes = header_bytes_ + mix(config_.seed + cut_salt, packet.sequence) % (bytes - header_bytes_);
    }
    due_events_ = std::max(due_events_, packet.due_events);
    frame = {.bytes = static_cast<std::uint32_t>(bytes),
             .source = packet.source,
             .event = packet.event,
             .truncated = packet.truncated,
             .corrupted = packet.corrupted,
             .due_events = due_events_};
    SimulatorAccount::Source& account = account_.sources[packet.source];
    ++account.emitted;
    account.frame_bytes += bytes;
    return true;
}

bool Simulator::next(std::span<std::byte> out, std::uint32_t& frame_bytes) noexcept {
    Frame frame;
    if (!next(out, frame)) {
        return false;
    }
    frame_bytes = frame.bytes;
    return true;
}

}  // namespace weir::port
