// [[port]] and the profile that it names.
#include <fmt/format.h>

#include <algorithm>

#include "config/device_facts.hpp"
#include "config/parts.hpp"

namespace weir::config::detail {

namespace {

using Args = std::vector<std::string>;  // "key=value", or a key alone

std::string_view key_of(std::string_view arg) {
    return arg.substr(0, arg.find('='));
}

/// Splits at commas; a list "[0,1]" is one value.
Args split_args(std::string_view text) {
    Args out;
    std::string current;
    int depth = 0;
    for (const char c : text) {
        depth += c == '[' ? 1 : c == ']' ? -1 : 0;
        if (c == ',' && depth <= 0) {
            out.push_back(std::move(current));
            current.clear();
        } else {
            current += c;
        }
    }
    out.push_back(std::move(current));
    std::erase(out, "");
    return out;
}

std::string join(const Args& args) {
    return fmt::format("{}", fmt::join(args, ","));
}

/// `upper`, followed by those of `lower` whose keys it does not have.
Args merge_args(Args upper, const Args& lower) {
    const Args own = upper;
    for (const std::string& arg : lower) {
        const bool set =
            std::any_of(own.begin(), own.end(), [&](const std::string& other) { return key_of(other) == key_of(arg); });
        if (!set) upper.push_back(arg);
    }
    return upper;
}

/// args = "key=value,key=value", or a table: { key = value }, which has room for a comment on each.
Args read_args(TableReader& table) {
    constexpr std::string_view accepted = "\"key=value,key=value\", or a table of strings, integers and booleans";
    const toml::node* node = table.get("args");
    if (node == nullptr) return {};
    if (node->is_string()) return split_args(*table.text("args"));
    const toml::table* entries = node->as_table();
    if (entries == nullptr) table.wrong("args", describe(*node), accepted);
    Args out;
    for (const auto& [key, value] : *entries) {
        const std::string name = "args." + in_quotes(key.str());
        std::string text;
        if (const auto* string = value.as_string())
            text = string->get();
        else if (const auto* integer = value.as_integer())
            text = std::to_string(integer->get());
        else if (const auto* boolean = value.as_boolean())
            text = boolean->get() ? "1" : "0";
        const auto plain = [](unsigned char c) { return c > 0x20 && c < 0x7f && c != '=' && c != ','; };
        const auto shown = [](unsigned char c) { return c > 0x20 && c < 0x7f; };
        if (text.empty() || !std::all_of(text.begin(), text.end(), shown) || key.str().empty() ||
            !std::all_of(key.str().begin(), key.str().end(), plain))
            fail(table.place(value), table.full_key(name), describe(value), accepted);
        const std::string arg = fmt::format("{}={}", key.str(), text);
        if (split_args(arg).size() != 1)
            fail(table.place(value), table.full_key(name), describe(value), "a list in brackets, as \"[0,1]\"");
        out.push_back(arg);
    }
    return out;
}

void read_profile(TableReader& table, PortConfig& port);

/// The keys that a profile may have too.
OptionTable<PortConfig> value_options() {
    // 64 KiB is what a 16-bit buffer length can say, headroom included.
    constexpr Bounds mbuf{1024, 65407};
    constexpr Bounds descriptors{32, 32768};
    OptionTable<PortConfig> out;
    out.add("args", "text or table",
            "more device arguments: `\"framesz=16384,blocksz=65536\"` or `{ framesz = 16384, blocksz = 65536 }`")
        .reads([](TableReader& table, PortConfig& port) {
            port.args = join(merge_args(read_args(table), split_args(port.args)));
        })
        .shows([](const PortConfig& port) { return value_of(port.args); })
        .reported([](const PortConfig&) { return nlohmann::json(); });  // `device` has them
    out.integer("queues", {1, 1024}, &PortConfig::queues, "receive queues, dealt out to the `rx` lcores");
    out.integer("mtu", {68, 65535}, &PortConfig::mtu,
                "largest IP packet. Buffers are sized by it, and the device is told if it can be. "
                "A kernel interface must have at least this MTU");
    out.integer("rx_descriptors", descriptors, &PortConfig::rx_descriptors,
                "length of each receive queue; what the driver does not take is fitted to its limits, with a remark");
    const auto options = [](auto member) {
        return [member](auto& port) -> auto& {
            return port.options.*member;
        };
    };
    using config::PortOptions;
    out.integer("tx_descriptors", descriptors, options(&PortOptions::tx_descriptors),
                "length of the transmit queue, for answers and acknowledgements; likewise");
    out.boolean("promiscuous", options(&PortOptions::promiscuous),
                "take frames whatever their destination MAC: streams are often addressed to a group, "
                "or to a MAC that the sender was told by hand");
    out.integer("link_wait_s", {0, 3600}, options(&PortOptions::link_wait_s),
                "wait so many seconds for the link before the line `running:`. Packets are taken meanwhile. "
                "Without a link the run goes on all the same, and says so");
    out.choice("flow_control", flow_control_names, options(&PortOptions::flow_control),
               "pause frames (IEEE 802.3x): obey them (`rx`), send them (`tx`), both, neither, "
               "or leave it as the device has it");
    out.integers("pfc", {0, 7}, "priority", options(&PortOptions::pfc),
                 "priorities with flow control of their own (IEEE 802.1Qbb)");
    out.boolean("flow_control_required", options(&PortOptions::flow_control_required),
                "what the driver refuses of these two ends the run; otherwise it is a remark");
    out.choice("timestamps", timestamps_names, options(&PortOptions::timestamps),
               "whose time a packet gets, see [Time](TIME.md)");
    out.choice("checksums", checksums_names, options(&PortOptions::checksums),
               "what a device that checks UDP checksums calls bad is `malformed.udp_checksum`; `\"ignore\"`: "
               "for senders that fill the field wrongly");
    out.size("mbuf_bytes", mbuf, &PortConfig::mbuf_bytes, "room of a packet buffer, without DPDK's headroom")
        .unset(0, "as the MTU needs");
    return out;
}

void check_address(TableReader& table, const PortConfig& port);

std::vector<std::string_view> tunnel_words() {
    return names_in(wire::tunnel_counters);
}

/// After the keys that say what the device does.
void read_tunnels(TableReader& table, PortConfig& port) {
    const std::string accepted = "a list of " + any_of(tunnel_words());
    const std::vector<std::string> names = table.texts("decapsulate", "what is taken off, " + any_of(tunnel_words()));
    for (const std::string& name : names) {
        const auto* const at = std::ranges::find(wire::tunnel_counters, name, &core::CounterInfo::name);
        if (at == wire::tunnel_counters.end()) table.wrong("decapsulate", in_quotes(name), accepted);
        const wire::Tunnel tunnel = wire::tunnel_at(static_cast<std::size_t>(at - wire::tunnel_counters.begin()));
        if (port.decapsulate.has(tunnel)) table.wrong("decapsulate", in_quotes(name) + " twice", "each once");
        port.decapsulate.add(tunnel);
    }
    if (port.steer == SteerMode::rules)
        table.wrong("steer", "\"rules\" with decapsulate",
                    "\"auto\" or \"software\": a device compares the outer headers, which are the mirror's");
    if (port.isolated)
        table.wrong("isolated", "true with decapsulate",
                    "false: a device that is given no rules hands nothing over when it is isolated");
    port.steer = SteerMode::software;
}

}  // namespace

OptionTable<PortConfig> port_options() {
    OptionTable<PortConfig> out;
    out.name("name", &PortConfig::name, "what `[[stream]]` and `--port` call it; each once")
        .required("a name for [[stream]] to refer to");
    out.text("device", &PortConfig::device,
             "a PCI address, `\"0000:3b:00.0\"`; an interface of the kernel, `\"kernel,iface=det0\"`; "
             "or a virtual device of DPDK with its arguments, `\"net_memif0,role=client\"`. "
             "See [devices](../guides/DEVICES.md). "
             "The name of a kernel interface alone is refused, with what to write. "
             "`weir replay` reads capture files instead and ignores it")
        .required("a PCI address, \"0000:3b:00.0\", or an interface of the kernel, \"kernel,iface=det0\"")
        .reported([](const PortConfig& port) { return nlohmann::json(port.devargs()); });
    out.add("profile", "path", "a TOML file with values for a driver, see below")
        .reads(read_profile)
        .shows([](const PortConfig& port) { return value_of(port.profile.file); })
        .unprinted();  // its values are
    out.include(value_options());
    out.text("address", &PortConfig::address,
             "`\"10.1.0.2/24\"`: weir answers ARP and ping for this IPv4 address; or `\"fd00::2/64\"`: "
             "neighbour solicitations and ping for this IPv6 address. Without it, nothing is answered")
        .check(check_address);
    add_flow_options(out);
    out.add(
           "decapsulate", quoted_words(tunnel_words()) + ", in a list",
           "what is taken off packets before anything else is done with them: what a mirror or a switch has put around "
           "the detectors' ([Mirrors](../guides/MIRRORS.md)). Packets without it pass as they are. "
           "The device is given no flow rules then (`steer = \"software\"`): it would compare the outer headers")
        .reads(read_tunnels)
        .schema(options::one_or_more_schema(options::words_schema(tunnel_words())))
        .shows([](const PortConfig& port) {
            nlohmann::json out;
            for (std::size_t i = 0; i < wire::tunnel_count; ++i)
                if (port.decapsulate.has(wire::tunnel_at(i))) out.push_back(wire::tunnel_counters[i].name);
            return out;
        })
        .usually("none");
    return out;
}

namespace {

void read_profile(TableReader& table, PortConfig& port) {
    const std::string name = *table.text("profile");
    std::filesystem::path path = name;
    if (path.is_relative()) path = std::filesystem::path(table.file()).parent_path() / path;
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error))
        table.wrong("profile", fmt::format("{} ({} is not a file)", in_quotes(name), path.string()),
                    "a profile that exists; the path is relative to the configuration's folder");
    const std::string file_name = path.string();
    port.profile = {file_name, table.place(*table.get("profile")).line};
    const toml::table document = parse_toml(read_text(path), file_name);
    TableReader profile(document, "", file_name);
    OptionTable<PortConfig> options = value_options();
    options.add("notes", "texts", "text for people").reads([](TableReader& notes, PortConfig&) {
        notes.texts("notes", "remarks for people");
    });
    options.read(profile, port);
}

void check_address(TableReader& table, const PortConfig& port) {
    const std::string_view text = port.address;
    const std::size_t slash = text.find('/');
    const auto address = parse_ip_address(text.substr(0, slash));
    const std::string_view prefix = slash == std::string_view::npos ? "" : text.substr(slash + 1);
    const bool digits = !prefix.empty() && prefix.size() <= 3 &&
                        std::all_of(prefix.begin(), prefix.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!address || !digits || std::stoi(std::string(prefix)) > (address->v6 ? 128 : 32))
        table.wrong("address", in_quotes(text),
                    "an IPv4 or IPv6 address with its prefix length, as \"10.1.0.2/24\" or \"fd00::2/64\"");
}

void check_frame_room(TableReader& table, const PortConfig& port) {
    if (const std::string wrong = config::argument_problem(port.devargs()); !wrong.empty())
        table.wrong("device", in_quotes(port.devargs()), "other arguments: " + wrong);
    const std::string problem = config::frame_room_problem(port.devargs(), port.mtu);
    if (!problem.empty()) table.wrong("mtu", std::to_string(port.mtu), "a smaller one, or other arguments: " + problem);
}

// Simulated detectors and kernel interfaces are as many as one likes.
std::string device_of(const PortConfig& port) {
    const std::string driver = driver_of(port.device);
    return driver == "sim" || driver == "kernel" ? port.devargs() : port.device.substr(0, port.device.find(','));
}

bool are_one_device(const PortConfig& a, const PortConfig& b) {
    return device_of(a) == device_of(b) && driver_of(a.device) != "sim";
}

std::string device_of_other(const PortConfig& port, const PortConfig& other) {
    return fmt::format("{}, the device of port {} at line {}", in_quotes(device_of(port)), in_quotes(other.name),
                       other.place.line);
}

PortConfig read_port(TableReader& table, std::uint32_t index) {
    PortConfig port = port_options().read(table);
    port.place = table.place();
    check_rules(port, index);
    check_frame_room(table, port);
    return port;
}

}  // namespace

std::vector<PortConfig> read_ports(TableReader& root, const RunConfig& run) {
    std::vector<PortConfig> out;
    for (TableReader& table : root.tables("port")) {
        PortConfig port = read_port(table, static_cast<std::uint32_t>(out.size()));
        for (const PortConfig& other : out) {
            // Each node of a cluster has devices of its own: see check_node_devices.
            if (!run.cluster && are_one_device(other, port))
                table.wrong("device", device_of_other(port, other),
                            "a device of its own for each port (net_af_packet0, net_af_packet1, ...)");
            if (other.name == port.name)
                table.wrong("name",
                            fmt::format("{}, the name of the port at line {}", in_quotes(port.name), other.place.line),
                            "a name of its own for each port");
        }
        out.push_back(std::move(port));
    }
    if (out.empty()) root.missing("port", "at least one [[port]] with name and device");
    return out;
}

void check_node_devices(const RunConfig& run) {
    for (const StreamConfig& a : run.streams)
        for (const StreamConfig& b : run.streams) {
            if (a.node != b.node || a.port >= b.port || !are_one_device(run.ports[a.port], run.ports[b.port])) continue;
            fail(run.ports[b.port].place, "port.device",
                 fmt::format("{}, and node {} has both", device_of_other(run.ports[b.port], run.ports[a.port]),
                             in_quotes(run.cluster->nodes[*a.node].name)),
                 "a device of its own for each port of a node (net_af_packet0, net_af_packet1, ...)");
        }
}

}  // namespace weir::config::detail

namespace weir::config {

std::string PortConfig::devargs() const {
    using namespace detail;
    const std::size_t comma = device.find(',');
    const std::string driver = device.substr(0, comma);
    const Args own = comma == std::string::npos ? Args{} : split_args(std::string_view(device).substr(comma + 1));
    const std::string all = join(merge_args(own, split_args(args)));
    return all.empty() ? driver : driver + "," + all;
}

std::optional<std::uint32_t> PortConfig::ipv4() const {
    const auto parsed = parse_ip_address(std::string_view(address).substr(0, address.find('/')));
    return parsed ? std::optional(parsed->v4()) : std::nullopt;
}

}  // namespace weir::config
