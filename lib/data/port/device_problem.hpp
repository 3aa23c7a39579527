// Why a device cannot be had, in words that say what to write or to run: the drivers' own say neither which interfaces
// there are nor which privilege is missing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir::port {

/// "eth1" is an interface of the kernel, or a misspelling, but no device: what to write instead. Empty for a PCI
/// address, a simulated detector and whatever DPDK may have.
[[nodiscard]] std::string device_name_problem(const std::string& device);

/// The interface that `device` ("net_af_packet0,iface=eth7,...") names is not there, or none is named: with those there
/// are. Otherwise empty.
[[nodiscard]] std::string interface_problem(const std::string& device);

/// `device` ("net_pcap0,tx_pcap=out.pcap") would empty a file that is there: libpcap's driver begins every file anew.
/// Otherwise empty.
[[nodiscard]] std::string overwriting_problem(const std::string& device);

/// Capabilities that this driver needs and the process lacks, as "CAP_NET_RAW"; empty if it has them all.
[[nodiscard]] std::vector<std::string> missing_capabilities(const std::string& device);
/// The same as a sentence with what to run; empty if it has them all.
[[nodiscard]] std::string privilege_problem(const std::string& device);

/// What to install, if DPDK has no driver for `device`; otherwise empty.
[[nodiscard]] std::string missing_driver_text(std::string_view device);

}  // namespace weir::port
