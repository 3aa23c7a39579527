// [[port]] and the profile that it names.
#include <fmt/format.h>

#include <algorithm>

#include "config/device_facts.hpp"
#include "config/parts.hpp"

namespace weir::pipeline::detail {

namespace {

using Args = std::vector<std::string>;  // "key=value", or a key alone

/// The keys that a profile may have too.
constexpr auto value_keys = std::to_array<std::string_view>(
    {"queues", "mtu", "rx_descriptors", "mbuf_bytes", "promiscuous", "tx_descriptors", "link_wait_s", "flow_control",
     "pfc", "flow_control_required", "timestamps", "checksums", "args"});

/// Those and the keys that only a port or only a profile has.
std::vector<std::string_view> with_values(std::initializer_list<std::string_view> own) {
    std::vector<std::string_view> keys(own);
    keys.insert(keys.end(), value_keys.begin(), value_keys.end());
    return keys;
}

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

/// What goes to the driver as it is.
void read_options(TableReader& table, port::PortOptions& options) {
    constexpr Bounds descriptors{32, 32768};
    constexpr Bounds seconds{0, 3600};
    constexpr Bounds priorities{0, 7};
    options.promiscuous = table.boolean("promiscuous").value_or(options.promiscuous);
    options.tx_descriptors =
        static_cast<std::uint16_t>(table.integer("tx_descriptors", descriptors).value_or(options.tx_descriptors));
    options.link_wait_s =
        static_cast<std::uint32_t>(table.integer("link_wait_s", seconds).value_or(options.link_wait_s));
    options.flow_control = table.choice("flow_control", flow_control_names).value_or(options.flow_control);
    if (const auto pfc = table.integers("pfc", priorities, "priority"); table.get("pfc") != nullptr) options.pfc = pfc;
    options.flow_control_required = table.boolean("flow_control_required").value_or(options.flow_control_required);
    options.timestamps = table.choice("timestamps", timestamps_names).value_or(options.timestamps);
    options.checksums = table.choice("checksums", checksums_names).value_or(options.checksums);
}

/// Reads `value_keys`. `args` comes back because its parts merge one by one.
Args read_values(TableReader& table, PortConfig& port) {
    // 64 KiB is what a 16-bit buffer length can say, headroom included.
    constexpr Bounds mbuf{1024, 65407};
    port.queues = static_cast<std::uint16_t>(table.integer("queues", {1, 1024}).value_or(port.queues));
    port.mtu = static_cast<std::uint16_t>(table.integer("mtu", {68, 65535}).value_or(port.mtu));
    port.rx_descriptors =
        static_cast<std::uint16_t>(table.integer("rx_descriptors", {32, 32768}).value_or(port.rx_descriptors));
    port.mbuf_bytes = static_cast<std::uint32_t>(table.size("mbuf_bytes", mbuf).value_or(port.mbuf_bytes));
    read_options(table, port.options);
    return read_args(table);
}

Args read_profile(TableReader& table, const std::string& name, PortConfig& port) {
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
    profile.allow(with_values({"notes"}));
    if (profile.get("notes") != nullptr) profile.texts("notes", "remarks for people");
    Args args = read_values(profile, port);
    profile.finish();
    return args;
}

void check_address(TableReader& table, std::string_view text) {
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
    const std::string problem = port::frame_room_problem(port.devargs(), port.mtu);
    if (!problem.empty()) table.wrong("mtu", std::to_string(port.mtu), "a smaller one, or other arguments: " + problem);
}

PortConfig read_port(TableReader& table, std::uint32_t index) {
    PortConfig port;
    port.place = table.place();
    table.allow(with_values({"name", "device", "profile", "address", "steer", "on_refusal", "isolated", "flows"}));
    const auto name = table.name("name");
    if (!name) table.missing("name", "a name for [[stream]] to refer to");
    port.name = *name;
    const auto device = table.text("device");
    if (!device)
        table.missing("device", "a PCI address, \"0000:3b:00.0\", or a virtual device, \"net_af_packet0,iface=det0\"");
    port.device = *device;
    Args profile_args;
    if (const auto profile = table.text("profile")) profile_args = read_profile(table, *profile, port);
    port.args = join(merge_args(read_values(table, port), profile_args));
    if (const auto address = table.text("address")) {
        check_address(table, *address);
        port.address = *address;
    }
    read_flow_keys(table, index, port);
    check_frame_room(table, port);
    table.finish();
    return port;
}

}  // namespace

std::vector<PortConfig> read_ports(TableReader& root) {
    std::vector<PortConfig> out;
    for (TableReader& table : root.tables("port")) {
        PortConfig port = read_port(table, static_cast<std::uint32_t>(out.size()));
        const auto device_of = [](const PortConfig& of) { return of.device.substr(0, of.device.find(',')); };
        for (const PortConfig& other : out) {
            // Simulated detectors are as many as one likes.
            if (device_of(other) == device_of(port) && device_of(port) != "sim")
                table.wrong("device",
                            fmt::format("{}, the device of port {} at line {}", in_quotes(device_of(port)),
                                        in_quotes(other.name), other.place.line),
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

}  // namespace weir::pipeline::detail

namespace weir::pipeline {

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

}  // namespace weir::pipeline
