// What `weir bench` is asked to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/measurement.hpp"
#include "bench/receiving.hpp"

namespace weir::app {

struct BenchOptions {
    enum class Role : std::uint8_t { loopback, server, client };
    Role role = Role::loopback;
    std::string host;  ///< of the server; for a server: the address that it listens at
    std::uint16_t port = 0;
    std::string token;
    std::vector<bench::Measurement> measurements;
    std::uint32_t repeats = 1;
    bench::Receiving::Settings receiving;  ///< server and loopback
    std::string device;                    ///< server and loopback: that DPDK is to use; empty: on top of the interface
    bool over_memif = false;               ///< loopback: shared memory in place of network namespaces
    std::string why_memif;                 ///< if nobody asked for it
    std::string json;                      ///< file, or empty
    std::string html;
    bool quiet = false;
    std::string command;  ///< as it was given, without the token
};

/// Nothing where everything has been said: --help, --list. Throws core::UsageError.
[[nodiscard]] std::optional<BenchOptions> bench_options(const std::vector<std::string>& args);

}  // namespace weir::app
