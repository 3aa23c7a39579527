// RDMA devices by libibverbs: found, opened, and what they give is given back. Only for builds that have libibverbs.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace weir::verbs {

/// What libibverbs gives and wants back.
template <class T, auto give_back>
struct GiveBack {
    void operator()(T* what) const noexcept { give_back(what); }
};
template <class T, auto give_back>
using Held = std::unique_ptr<T, GiveBack<T, give_back>>;

using Context = Held<ibv_context, ibv_close_device>;
using Domain = Held<ibv_pd, ibv_dealloc_pd>;
using Completions = Held<ibv_cq, ibv_destroy_cq>;
using Region = Held<ibv_mr, ibv_dereg_mr>;
using QueuePair = Held<ibv_qp, ibv_destroy_qp>;

/// Throw core::RunError: the device did not do this step, because of `error` (an errno).
[[noreturn]] void throw_refused(const char* step, int error);
/// `code`: what libibverbs returns for a step that is an action.
void must(int code, const char* step);

/// For a step that gives something.
template <class Owner>
[[nodiscard]] Owner held(typename Owner::pointer what, const char* step) {
    if (what == nullptr) throw_refused(step, errno);
    return Owner(what);
}

/// `access`: IBV_ACCESS_..., beside that of sending from it. Throws core::RunError.
[[nodiscard]] Region registered(ibv_pd* domain, const void* memory, std::size_t bytes, int access);

/// By its name; empty: the first there is. Throws core::RunError with the names there are.
[[nodiscard]] Context open_device(const std::string& name);

/// A port of a device, and one of the addresses that it has there.
struct RdmaPort {
    Context context;
    std::uint8_t number = 1;
    std::uint32_t gid_index = 0;
    ibv_gid gid{};

    [[nodiscard]] std::string device() const { return ::ibv_get_device_name(context->device); }
    /// Throws core::RunError.
    [[nodiscard]] ibv_port_attr attributes() const;
    /// What the kernel shows of the port, below /sys/class/infiniband: "hw_counters/rcvd_pkts". Nothing if there is no
    /// such counter. The kernel asks the device no more often than every 10 ms.
    [[nodiscard]] std::optional<std::uint64_t> counter(std::string_view name) const;
};

/// Port 1 of the device with this name (see open_device) and its RoCEv2 address, best one that is an IPv4 address.
/// Throws core::RunError if it has none.
[[nodiscard]] RdmaPort port_of(const std::string& name);
/// The port that has this IPv4 address for RoCEv2. Throws core::RunError if none has.
[[nodiscard]] RdmaPort port_with(const std::string& address);

/// Bytes that a port's path carries in a packet.
[[nodiscard]] inline std::uint32_t path_mtu_of(const ibv_port_attr& port) noexcept {
    return 128U << port.active_mtu;
}

}  // namespace weir::verbs
