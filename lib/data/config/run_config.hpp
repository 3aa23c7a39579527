// The configuration of a run: TOML in, plain checked structs out. Nothing here touches DPDK, opens a device or decides
// a placement; docs/reference/CONFIGURATION.md describes every key.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assemble/overload.hpp"
#include "config/cluster.hpp"
#include "config/port_options.hpp"
#include "config/reduce.hpp"
#include "config/sink.hpp"
#include "core/error.hpp"
#include "options/place.hpp"
#include "roce/queue_pair.hpp"
#include "steer/flow_rule.hpp"
#include "wire/decapsulation.hpp"
#include "wire/format.hpp"

namespace weir::options {
struct ReferenceTable;
using Reference = std::vector<ReferenceTable>;
}  // namespace weir::options

namespace weir::config {

using options::Place;

enum class Transport : std::uint8_t { udp, roce };
/// What tells the sources of a UDP stream apart.
enum class SourceBy : std::uint8_t { port, address, header };
/// Where the packets of one message may come from: one IP address, or any.
enum class Senders : std::uint8_t { one, any };
/// Where a message's event number comes from.
enum class EventBy : std::uint8_t {
    format,     ///< the detector header
    immediate,  ///< the RDMA immediate, in the last packet
    count,      ///< the messages of a queue pair are numbered from 0 in the order they were sent
    arrival,    ///< one source only: messages are numbered from 0 in closing order
};
enum class IcrcMode : std::uint8_t { check, ignore };
/// How peers agree on queue pairs with us while a run goes on.
enum class Exchange : std::uint8_t {
    none,      ///< they do not: both sides are configured
    perftest,  ///< over TCP, as ib_send_bw and ib_write_bw of the perftest package do
};
enum class IncompleteMode : std::uint8_t { keep, drop };
enum class AssemblyMode : std::uint8_t { automatic, reference, copy };
using OverloadMode = assemble::Overload;
/// Who steers by flow rules: the device where it takes them, also where one queue needs none, or weir alone.
enum class SteerMode : std::uint8_t { automatic, rules, software };
/// What to do with a rule that the device refuses.
enum class RefusalMode : std::uint8_t { software, fail };
enum class IdleMode : std::uint8_t { spin, pause, sleep };

/// An IPv4 or IPv6 address. IPv4 occupies the first 4 bytes, in network order.
struct IpAddress {
    std::string text;
    std::array<std::uint8_t, 16> bytes{};
    bool v6 = false;

    /// The IPv4 address in host byte order, as wire::Datagram has it; 0 for IPv6.
    [[nodiscard]] std::uint32_t v4() const noexcept {
        if (v6) return 0;
        return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3];
    }
    friend bool operator==(const IpAddress& a, const IpAddress& b) noexcept {
        return a.v6 == b.v6 && a.bytes == b.bytes;
    }
};

/// One [[port]], its profile already merged underneath.
struct PortConfig {
    std::string name;
    std::string device;  ///< PCI address or vdev with its arguments, as written
    std::string args;    ///< device arguments from the profile, "key=value,key=value"
    std::uint16_t queues = 1;
    std::uint16_t mtu = 9000;
    std::uint16_t rx_descriptors = 1024;
    std::uint32_t mbuf_bytes = 0;        ///< data room of an mbuf without headroom; 0: as the MTU needs
    std::string address;                 ///< "10.1.0.2/24", or empty
    std::string flows;                   ///< the rule file, as an absolute path; empty: weir writes the rules itself
    std::vector<steer::FlowRule> rules;  ///< of the file
    SteerMode steer = SteerMode::automatic;
    RefusalMode on_refusal = RefusalMode::software;
    wire::Tunnels decapsulate;    ///< what is taken off its packets
    bool isolated = false;        ///< the device hands over only what a rule matches
    config::PortOptions options;  ///< link, flow control, time stamps, checksums
    Place profile;                ///< file is empty when there is none
    Place place;

    /// What EAL gets: `device` followed by those of `args` that it does not set itself.
    [[nodiscard]] std::string devargs() const;
    /// `address` without its prefix length, host byte order.
    [[nodiscard]] std::optional<std::uint32_t> ipv4() const;
    bool operator==(const PortConfig&) const = default;
};

/// How the queue pairs of a stream with transport = "roce" are served. Lists have one entry for each queue pair, or
/// none.
struct RoceConfig {
    struct Peer {
        std::uint32_t qp = 0;
        std::optional<IpAddress> address;
        bool operator==(const Peer&) const = default;
    };
    struct Region {
        roce::Region region;
        std::optional<std::uint32_t> qp;  ///< only for this queue pair of the stream
        bool operator==(const Region&) const = default;
    };
    roce::Service service = roce::Service::listen;
    std::vector<Peer> peers;
    std::vector<std::uint32_t> psn;
    std::uint32_t path_mtu = 0;  ///< 0: as the first message shows it
    std::uint32_t pkey = wire::roce_pkey_default;
    std::uint32_t qkey = 0;  ///< ud
    std::uint32_t rnr_timer_us = 640;
    std::uint32_t ack_every = 0;
    std::uint32_t cnp_interval_us = 50;  ///< 0: none are sent
    std::vector<Region> regions;

    bool operator==(const RoceConfig&) const = default;
};

/// One [[stream]]. Which keys apply follows the transport; the others keep their defaults.
struct StreamConfig {
    std::uint32_t port = 0;             ///< index into RunConfig::ports
    std::optional<std::uint32_t> node;  ///< index into ClusterConfig::nodes: that it arrives at
    Transport transport = Transport::udp;
    std::string format;  ///< a built-in one (wire::formats) or the name of a declared one
    EventBy event = EventBy::format;
    std::vector<IpAddress> src;                  ///< empty: any
    std::vector<IpAddress> dst;                  ///< empty: any
    std::optional<std::uint32_t> mark;           ///< only packets that a flow rule marks so
    std::uint32_t max_message_bytes = 0;         ///< bound for messages that do not declare their size
    wire::FormatOptions own;                     ///< the keys of the format; see format_options
    std::vector<std::uint16_t> udp_dst;          ///< udp
    SourceBy source_by = SourceBy::port;         ///< udp
    Senders senders = Senders::one;              ///< udp
    std::vector<std::uint32_t> source_ids;       ///< udp, source_by = header: the header's ids in source order
    std::vector<std::uint32_t> qp;               ///< roce: destination queue pair of each source, 24 bits
    IcrcMode icrc = IcrcMode::check;             ///< roce
    std::optional<std::uint32_t> message_bytes;  ///< roce, event = count: every message has this size
    RoceConfig roce;                             ///< roce: service and what belongs to it
    Exchange exchange = Exchange::none;          ///< roce
    std::string listen_address = "0.0.0.0";      ///< exchange: IPv4, of the kernel
    std::uint16_t listen_port = 18515;           ///< exchange: TCP
    std::uint32_t first_source = 0;              ///< run-wide id of this stream's first source
    std::uint32_t source_count = 0;              ///< its sources are first_source .. first_source + source_count - 1
    Place place;

    bool operator==(const StreamConfig&) const = default;
};

/// One source, in the run-wide order: RunConfig::sources[id].
struct SourceConfig {
    std::uint32_t stream = 0;  ///< index into RunConfig::streams
    std::uint32_t key = 0;     ///< UDP port, index into StreamConfig::src, header id or queue pair
    std::string label;         ///< for people: "det0 udp 50001"

    bool operator==(const SourceConfig&) const = default;
};

struct EventsConfig {
    std::uint32_t sources = 1;  ///< how many make an event complete
    std::uint64_t memory_bytes = std::uint64_t{1} << 30;
    std::optional<std::uint32_t> window;  ///< cap on open events
    std::uint32_t timeout_ms = 500;
    std::uint32_t ip_fragment_timeout_ms = 20;  ///< for the rest of a fragmented datagram
    IncompleteMode incomplete = IncompleteMode::keep;
    AssemblyMode assembly = AssemblyMode::automatic;
    OverloadMode overload = OverloadMode::evict_oldest;
    std::uint32_t prescale = 1;            ///< OverloadMode::prescale: of how many events one is kept
    std::optional<std::uint32_t> horizon;  ///< closed event numbers remembered, per source
    /// How far apart the numbers of consecutive events are; stride_sparse: not evenly. Nothing: learnt from the data.
    std::optional<std::uint64_t> stride;
    static constexpr std::uint64_t stride_sparse = 0;

    bool operator==(const EventsConfig&) const = default;
};

/// Lists that are empty are proposed by the topology. One lcore may be in several lists: its stages then run fused.
struct LcoresConfig {
    std::vector<std::uint32_t> rx;
    std::vector<std::uint32_t> build;
    std::vector<std::uint32_t> work;
    IdleMode idle = IdleMode::pause;

    bool operator==(const LcoresConfig&) const = default;
};

/// [serve]: what others see of a run, and change. Without it nothing listens in `weir run` and `weir replay`.
struct ServeConfig {
    std::string listen = "127.0.0.1:9321";  ///< "HOST:PORT", "[V6]:PORT" or "unix:/path"; empty: only `socket`
    std::string socket;                     ///< a UNIX socket for `weir ctl` and `weir top`; empty: by the run's name
    std::string token_file;                 ///< who changes something over TCP shows what is in it; empty: nobody may
    std::string reports;                    ///< a folder for reports of runs, and snapshots; empty: none are kept
    std::string run_log;                    ///< JSON lines, one for each change of state; empty: none
    std::uint32_t connections = 256;        ///< at the same time
    std::uint32_t updates_per_s = 2;        ///< of the page, at most

    bool operator==(const ServeConfig&) const = default;
};

struct RunConfig {
    std::string name = "run";  ///< {name} in the path of a sink
    std::string node;          ///< {node} in it: which node's view this is (node_view.hpp); empty: nobody's
    std::vector<PortConfig> ports;
    std::vector<StreamConfig> streams;
    std::vector<wire::DeclaredSpec> formats;
    EventsConfig events;
    std::vector<ReduceConfig> reduce;
    std::vector<SinkConfig> sinks;
    LcoresConfig lcores;
    std::optional<ServeConfig> serve;
    std::optional<ClusterConfig> cluster;
    std::vector<SourceConfig> sources;  ///< follows from the streams, in order of appearance
    std::vector<std::string> warnings;  ///< accepted, but probably not what was meant; not part of the comparison

    friend bool operator==(const RunConfig& a, const RunConfig& b);
};

/// Reads and checks a configuration file and the profiles that it names (relative to the file's own folder).
/// Throws core::UsageError: "FILE:LINE: KEY: found FOUND; accepted: WHAT".
/// `has_out`: a run is written to a path that the command line gives, so a configuration without [[sink]] means
/// kind = "events" there.
RunConfig load_config(const std::filesystem::path& file, bool has_out = false);

/// The same for text. `file_name` names it in errors, and its folder is where profiles are looked for.
RunConfig parse_config(std::string_view text, std::string_view file_name, bool has_out = false);

/// Only the declared formats of a file, those of the files that it includes among them; the rest of it is not looked
/// at.
std::vector<wire::DeclaredSpec> load_formats(const std::filesystem::path& file);

/// The effective configuration as TOML that parse_config reads back to an equal RunConfig; defaults are marked.
std::string print_config(const RunConfig& config);

/// The same for the run report and the manifest.
nlohmann::json config_json(const RunConfig& config);

/// All keys of all tables, for people.
options::Reference config_reference();

/// What the stream's format is made with (wire::FormatEntry::make_context), its [[format]] included.
wire::FormatOptions format_options(const RunConfig& run, const StreamConfig& stream);

/// The line of wire's table for the stream's format: of its own name, or that of described ones.
const wire::FormatEntry& format_entry(const StreamConfig& stream);

/// `overload` as it is written: "evict-oldest", "prescale:10".
std::string overload_text(const EventsConfig& events);

/// An IPv4 or IPv6 address, or nothing.
std::optional<IpAddress> parse_ip_address(std::string_view text);

}  // namespace weir::config
