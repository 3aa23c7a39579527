#include "verbs/rdma_device.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <span>
#include <vector>

#include "core/error.hpp"

namespace weir::verbs {
namespace {

using core::RunError;

constexpr const char* no_device =
    "no RDMA device; an adapter needs its driver and rdma-core, "
    "soft-RoCE `rdma link add rxe0 type rxe netdev ETH`";

class DeviceList {
public:
    DeviceList() : list_(::ibv_get_device_list(&count_)) {
        if (list_ == nullptr) count_ = 0;
    }
    ~DeviceList() {
        if (list_ != nullptr) ::ibv_free_device_list(list_);
    }
    DeviceList(const DeviceList&) = delete;
    DeviceList& operator=(const DeviceList&) = delete;
    [[nodiscard]] std::span<ibv_device* const> devices() const noexcept {
        return {list_, static_cast<std::size_t>(count_)};
    }
    [[nodiscard]] std::string names() const {
        std::vector<std::string> names;
        for (ibv_device* device : devices()) names.emplace_back(::ibv_get_device_name(device));
        return fmt::format("{}", fmt::join(names, ", "));
    }

private:
    int count_ = 0;
    ibv_device** list_;
};

Context opened(ibv_device* device) {
    ibv_context* context = ::ibv_open_device(device);
    if (context == nullptr)
        throw RunError(
            fmt::format("RDMA device '{}' cannot be opened: {}", ::ibv_get_device_name(device), std::strerror(errno)));
    return Context(context);
}

/// An IPv4 address is one as ::ffff:a.b.c.d.
bool is_ipv4(const ibv_gid& gid) noexcept {
    constexpr std::array<std::uint8_t, 12> prefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    return std::equal(prefix.begin(), prefix.end(), gid.raw);
}

/// For each RoCEv2 address of a port, until `take` is content with one.
template <class Take>
bool look_through(ibv_context* context, std::uint8_t number, Take&& take) {
    ibv_port_attr port{};
    if (::ibv_query_port(context, number, &port) != 0) return false;
    for (std::uint32_t index = 0; index < static_cast<std::uint32_t>(port.gid_tbl_len); ++index) {
        ibv_gid_entry entry{};
        if (::ibv_query_gid_ex(context, number, index, &entry, 0) == 0 && entry.gid_type == IBV_GID_TYPE_ROCE_V2 &&
            take(index, entry.gid))
            return true;
    }
    return false;
}

}  // namespace

void throw_refused(const char* step, int error) {
    throw RunError(fmt::format("RDMA device: {} failed: {}", step, std::strerror(error)));
}

void must(int code, const char* step) {
    if (code != 0) throw_refused(step, code < 0 ? errno : code);
}

Region registered(ibv_pd* domain, const void* memory, std::size_t bytes, int access) {
    return held<Region>(::ibv_reg_mr(domain, const_cast<void*>(memory), bytes, access),
                        "registering memory (`ulimit -l` limits it)");
}

Context open_device(const std::string& name) {
    const DeviceList list;
    if (list.devices().empty()) throw RunError(no_device);
    for (ibv_device* device : list.devices())
        if (name.empty() || name == ::ibv_get_device_name(device)) return opened(device);
    throw RunError(fmt::format("no RDMA device '{}'; there are: {}", name, list.names()));
}

ibv_port_attr RdmaPort::attributes() const {
    ibv_port_attr port{};
    must(::ibv_query_port(context.get(), number, &port), "asking about its port");
    return port;
}

std::optional<std::uint64_t> RdmaPort::counter(std::string_view name) const {
    std::ifstream file(fmt::format("/sys/class/infiniband/{}/ports/{}/{}", device(), number, name));
    std::uint64_t value = 0;
    if (file >> value) return value;
    return std::nullopt;
}

RdmaPort port_of(const std::string& name) {
    RdmaPort port{.context = open_device(name)};
    bool any = false;
    look_through(port.context.get(), port.number, [&](std::uint32_t index, const ibv_gid& gid) {
        if (!any || is_ipv4(gid)) {
            port.gid_index = index;
            port.gid = gid;
        }
        any = true;
        return is_ipv4(gid);  // perftest and weir talk of those
    });
    if (!any) throw RunError("RDMA device: its port has no RoCEv2 address; has its network interface an IP address?");
    return port;
}

RdmaPort port_with(const std::string& address) {
    in_addr wanted{};
    ::inet_pton(AF_INET, address.c_str(), &wanted);
    const DeviceList list;
    if (list.devices().empty()) throw RunError(no_device);
    for (ibv_device* device : list.devices()) {
        RdmaPort port{.context = opened(device)};
        ibv_device_attr attributes{};
        must(::ibv_query_device(port.context.get(), &attributes), "asking about it");
        const auto is_it = [&](std::uint32_t index, const ibv_gid& gid) {
            port.gid_index = index;
            port.gid = gid;
            return is_ipv4(gid) && std::memcmp(gid.raw + 12, &wanted, sizeof wanted) == 0;
        };
        for (port.number = 1; port.number <= attributes.phys_port_cnt; ++port.number)
            if (look_through(port.context.get(), port.number, is_it)) return port;
    }
    throw RunError(fmt::format("no RDMA device has the address {}; there are: {}", address, list.names()));
}

}  // namespace weir::verbs
