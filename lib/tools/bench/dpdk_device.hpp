// What all that goes by DPDK here shares: EAL, which starts once in a process, threads that it knows, and a device as
// it is written on the command line.
#pragma once

#include <cstdint>
#include <string>

#include "port/buffers.hpp"
#include "port/live_port.hpp"

namespace weir::bench {

/// Of a device that takes any frame that is measured.
inline constexpr std::uint32_t room_bytes_max = 16640;
/// Of the largest receiver's pool; a sender has less.
inline constexpr std::uint32_t dpdk_buffers = 8192;

/// EAL stays until the process ends. `device`: of the first one, which says whether there is a PCI bus. Throws
/// core::RunError with what DPDK said.
void need_eal(const std::string& device);
/// DPDK's pools have caches for threads that they know.
void need_lcore();
/// Two devices or pools of one name would be the same.
[[nodiscard]] std::uint32_t next_dpdk_id();
/// `device`: VDEV[,ARGS] or a PCI address.
[[nodiscard]] port::LivePortConfig dpdk_port_config(const std::string& device, std::uint32_t mtu);

/// A device's place on its bus: with it goes what is left of a device that has been closed, so that the same
/// process can have it again.
class DpdkPlace {
public:
    /// Starts EAL.
    explicit DpdkPlace(const std::string& device);
    ~DpdkPlace();
    DpdkPlace(const DpdkPlace&) = delete;
    DpdkPlace& operator=(const DpdkPlace&) = delete;

private:
    std::string name_;
    const char* bus_;
};

}  // namespace weir::bench
