// Which packet comes when: events, sources in turn, faults, reordering, and the account. SimulatedFrames writes them.
#include "simulate/simulator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "core/allocation_context.hpp"
#include "core/error.hpp"
#include "wire/network.hpp"

namespace weir::simulate {

namespace {

using core::require;

constexpr std::uint32_t reorder_max = 1U << 20;
constexpr std::uint32_t message_bytes_limit = 1U << 30;
constexpr std::uint32_t sources_max = 4096;

const SimulationEntry& entry_of(const SimulatorConfig& config) {
    const SimulationEntry* entry = find_simulated(config.format);
    require(entry != nullptr, fmt::format("--format {}: there is no simulator of it", config.format));
    return *entry;
}

/// The formats that `holds`, each as `before` has it, with `between` before the last one.
template <class Holds>
std::string names_where(const Holds& holds, std::string_view comma, std::string_view between) {
    std::vector<std::string_view> names;
    for (const SimulationEntry& entry : simulated_formats())
        if (wire::is_built_in(entry.name) && holds(entry)) names.push_back(entry.name);
    std::string text;
    for (std::size_t i = 0; i < names.size(); ++i)
        text += fmt::format("{}{}", i == 0 ? "" : i + 1 == names.size() ? between : comma, names[i]);
    return text;
}

/// Whether a key of [[stream]] is this format's: what a detector can be told is the same for both ends.
bool has_key(const SimulationEntry& entry, std::string_view key) {
    const auto keys = wire::find_format(entry.name)->keys;
    return std::ranges::find(keys, key) != keys.end();
}

/// What a receiver of the format would know of it. An impossible number of interfaces is refused later, for all formats
/// in the same words.
wire::FormatContext context_of(const SimulatorConfig& config, const SimulationEntry& entry) {
    if (config.interfaces != 1 && !(config.interfaces == 2 && has_key(entry, "interfaces"))) return {};
    require(entry.name == wire::described_format().name || has_key(entry, "rows") ||
                (!config.rows && !config.bit_depth && !config.tengiga),
            fmt::format("rows, bit_depth and tengiga belong to the formats {}",
                        names_where([](const auto& one) { return has_key(one, "rows"); }, ", ", " and ")));
    return entry.context(config);
}

void check_probability(const char* option, double value) {
    require(value >= 0 && value <= 1, fmt::format("--{} {}: a probability from 0 to 1 is accepted", option, value));
}

void check_mtu(const SimulatorConfig& config, const SimulationEntry& entry, const wire::FormatContext& context) {
    if (config.transport != SimulatedTransport::udp) {
        const bool known =
            config.mtu >= 256 && config.mtu <= wire::roce_mtu_max && (config.mtu & (config.mtu - 1)) == 0;
        require(known, fmt::format("--mtu {}: a RoCE path MTU is 256, 512, 1024, 2048 or 4096", config.mtu));
        return;
    }
    require(config.mtu >= 576 && config.mtu <= 65535, fmt::format("--mtu {}: 576 to 65535 is accepted", config.mtu));
    const std::uint32_t packet_bytes =
        wire::ipv4_header_bytes + wire::udp_header_bytes + context.header_bytes + context.payload_bytes;
    require(!entry.fixed_packets || config.mtu >= packet_bytes,
            fmt::format("--mtu {}: a packet of this detector has {} bytes and is never fragmented", config.mtu,
                        packet_bytes));
}

void check_roce(const SimulatorConfig& config, const wire::FormatContext& context) {
    const bool roce = config.transport != SimulatedTransport::udp;
    require(roce || config.service == wire::RoceTransport::uc,
            "--service belongs to --transport roce-send or roce-write");
    require(roce || !config.ipv6, "--src-ip, --dst-ip: IPv6 addresses go with --transport roce-send or roce-write");
    require(roce || config.corrupt == 0,
            "--corrupt goes with --transport roce-send or roce-write, whose packets carry a checksum of everything");
    if (config.service != wire::RoceTransport::ud) return;
    require(config.transport == SimulatedTransport::roce_send, "--service ud goes with --transport roce-send");
    const std::uint32_t header_bytes = context.header_bytes;
    require(
        context.message_bytes == 0,
        fmt::format("--service ud: a message is one packet, and a frame of {} bytes is not", context.message_bytes));
    require(config.bytes_max + header_bytes <= config.mtu,
            fmt::format("--bytes {}: a message of --service ud is one packet, and --mtu {} leaves room for {} bytes",
                        config.bytes_max, config.mtu, config.mtu - header_bytes));
}

/// Where WRITEs go, and what frames are cut into for them.
void check_writes(const SimulatorConfig& config, const SimulationEntry& entry, const wire::FormatContext& context) {
    const bool writes = config.transport == SimulatedTransport::roce_write;
    require(writes || (config.regions == 1 && config.region_stride == 0),
            "--regions and --region-stride belong to --transport roce-write");
    const bool frames = writes && entry.row_bytes != nullptr;
    const SimulatorConfig usual;
    require(frames || (config.write_bytes == usual.write_bytes && config.readout_chips == usual.readout_chips),
            fmt::format("--write-bytes and --readout-chips belong to --transport roce-write with --format {}",
                        names_where([](const auto& one) { return one.row_bytes != nullptr; }, ", ", " or ")));
    if (!writes) return;
    constexpr std::uint32_t regions_max = 1U << 24;
    require(config.regions >= 1 && config.regions <= regions_max,
            fmt::format("--regions {}: 1 to {} is accepted", config.regions, regions_max));
    const std::uint64_t bytes =
        std::uint64_t{context.header_bytes} + (context.message_bytes != 0 ? context.message_bytes : config.bytes_max);
    require(config.regions == 1 || config.region_stride >= bytes,
            fmt::format("--region-stride {}: at least the {} bytes of a message are accepted", config.region_stride,
                        bytes));
    require(config.region_stride <= SimulatedFrames::region_stride_max,
            fmt::format("--region-stride {}: up to {} is accepted", config.region_stride,
                        SimulatedFrames::region_stride_max));
    require(config.sources == 1 || config.regions * config.region_stride <= SimulatedFrames::va_step,
            fmt::format("--regions {}: {} bytes in all, and the next source's begin after {}", config.regions,
                        config.regions * config.region_stride, SimulatedFrames::va_step));
    if (!frames) return;
    constexpr std::uint32_t write_bytes_min = 256;
    require(config.write_bytes >= write_bytes_min,
            fmt::format("--write-bytes {}: {} or more are accepted", config.write_bytes, write_bytes_min));
    require(config.readout_chips >= 1 && config.readout_chips <= 1024,
            fmt::format("--readout-chips {}: 1 to 1024 is accepted", config.readout_chips));
    require(config.immediate || config.write_bytes >= context.message_bytes,
            "--no-immediate: a frame of several WRITEs ends with an immediate");
}

void check_sizes(const SimulatorConfig& config, const SimulationEntry& entry, const wire::FormatContext& context) {
    require(config.bytes_min <= config.bytes_max,
            fmt::format("--bytes-min {} is more than --bytes {}", config.bytes_min, config.bytes_max));
    require(config.bytes_max <= message_bytes_limit,
            fmt::format("--bytes {}: up to {} is accepted", config.bytes_max, message_bytes_limit));
    const bool datagram = config.transport == SimulatedTransport::udp && entry.one_datagram;
    const std::uint32_t room = config.mtu - wire::ipv4_header_bytes - wire::udp_header_bytes - context.header_bytes;
    require(!datagram || config.bytes_max <= room,
            fmt::format("--bytes {}: a message over udp is one datagram, and --mtu {} leaves room for {} bytes",
                        config.bytes_max, config.mtu, room));
}

void check(const SimulatorConfig& config, const SimulationEntry& entry, const wire::FormatContext& context) {
    require(config.sources >= 1 && config.sources <= sources_max,
            fmt::format("--sources {}: 1 to {} is accepted", config.sources, sources_max));
    require(config.interfaces == 1 || config.interfaces == 2,
            fmt::format("--interfaces {}: a module has 1 or 2", config.interfaces));
    require(
        has_key(entry, "interfaces") || config.interfaces == 1,
        "--interfaces belongs to --format " +
            names_where([](const auto& one) { return has_key(one, "interfaces"); }, ", --format ", " and --format "));
    require(config.sources % config.interfaces == 0,
            fmt::format("--sources {} with --interfaces 2: a source is a UDP port, so modules come in pairs of sources",
                        config.sources));
    const bool roce = config.transport != SimulatedTransport::udp;
    require(!roce || entry.over_roce,
            fmt::format("--format {} and declared ones go with --transport udp; for RoCE use {}",
                        names_where([](const auto& one) { return !one.over_roce; }, ", ", ", "),
                        names_where([](const auto& one) { return one.over_roce; }, ", ", " or ")));
    require(!roce || !config.one_port, "--one-port belongs to --transport udp");
    require(config.lb_version == 0 || entry.load_balancer,
            "--lb belongs to --format " + names_where([](const auto& one) { return one.load_balancer; }, ", ", ", "));
    require(config.lb_version == 0 || config.lb_version == 2 || config.lb_version == 3,
            fmt::format("--lb {}: load balancer header version 2 or 3 is accepted", config.lb_version));
    require(config.re_version == 1 || entry.load_balancer,
            "--re belongs to --format " + names_where([](const auto& one) { return one.load_balancer; }, ", ", ", "));
    require(config.re_version == 1 || config.re_version == 2,
            fmt::format("--re {}: reassembly header version 1 or 2 is accepted", config.re_version));
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
    check_mtu(config, entry, context);
    check_sizes(config, entry, context);
    check_roce(config, context);
    check_writes(config, entry, context);
    if (entry.check != nullptr) entry.check(config, context);
}

void complete_writes(SimulatorConfig& config, const SimulationEntry& entry, const wire::FormatContext& context) {
    if (config.region_stride == 0)
        config.region_stride = std::uint64_t{context.header_bytes} +
                               (context.message_bytes != 0 ? context.message_bytes : config.bytes_max);
    if (config.write_bytes != 0 || entry.row_bytes == nullptr) return;
    const std::uint32_t row_bytes = entry.row_bytes(config);
    config.write_bytes = std::max(1U, config.mtu / row_bytes) * row_bytes;
}

/// With the defaults that depend on format and transport.
SimulatorConfig completed(SimulatorConfig config, const SimulationEntry& entry, const wire::FormatContext& context) {
    const bool roce = config.transport != SimulatedTransport::udp;
    if (config.mtu == 0) config.mtu = roce ? 4096 : 9000;
    if (config.port == 0) config.port = roce ? wire::roce_port : entry.port;
    if (config.bytes_max == 0) {
        constexpr std::uint32_t usual_bytes = 20000;
        const bool datagram =
            entry.fills_datagram != nullptr && entry.fills_datagram(config) && !roce && config.mtu >= 576;
        const std::uint32_t headers = wire::ipv4_header_bytes + wire::udp_header_bytes + context.header_bytes;
        config.bytes_max = datagram ? config.mtu - std::min(headers, config.mtu) : usual_bytes;
        if (config.service == wire::RoceTransport::ud && config.mtu >= 256)
            config.bytes_max = config.mtu - context.header_bytes;
        config.bytes_max = std::max(config.bytes_min, config.bytes_max);
    }
    if (config.transport == SimulatedTransport::roce_write) complete_writes(config, entry, context);
    return config;
}

SimulatedFrames frames_of(const SimulatorConfig& given) {
    const core::AllocationContext allocating("the data to send");
    const SimulationEntry& entry = entry_of(given);
    const wire::FormatContext context = context_of(given, entry);
    const SimulatorConfig config = completed(given, entry, context);
    check(config, entry, context);
    return {config, context, entry};
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

Simulator::Simulator(const SimulatorConfig& config) : frames_(frames_of(config)), config_(frames_.config()) {
    account_.sources.resize(config_.sources);
    event_packets_.resize(config_.sources);
    psn_.assign(config_.sources, config_.first_psn);
    source_ = config_.sources;  // no event is open yet
    waiting_.reserve(std::size_t{config_.reorder} + 4);
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
        event_packets_[source] = frames_.packet_count(bytes);
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
    const bool has_payload = frames_.has_payload(packet.event, packet.source);
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
    assert(out.size() >= frame_bytes_max());
    // The first in line may go as soon as nothing that is planned later can get a place before it.
    while ((waiting_.empty() || waiting_.front().place >= sequence_) && plan_next()) {
    }
    if (waiting_.empty()) {
        return false;
    }
    std::pop_heap(waiting_.begin(), waiting_.end(), Later{});
    const Planned packet = waiting_.back();
    waiting_.pop_back();
    const std::uint32_t header_bytes = frames_.header_bytes();
    std::size_t bytes = frames_.write(
        {.event = packet.event, .source = packet.source, .index = packet.packet, .counter = packet.psn}, out);
    if (packet.corrupted) flip_bit(out.first(bytes), header_bytes, mix(config_.seed + bit_salt, packet.sequence));
    if (packet.truncated) {
        bytes = header_bytes + mix(config_.seed + cut_salt, packet.sequence) % (bytes - header_bytes);
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

}  // namespace weir::simulate
