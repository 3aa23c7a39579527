// A device that weir makes itself, in its own process: what packets come from where there is no network. The pipeline
// knows only this much of it; who makes it is handed in by the program (`device = "sim,..."` is the simulated detector,
// simulate/simulator_feeder.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "port/buffers.hpp"
#include "stages/stage.hpp"
#include "wire/format.hpp"

namespace weir::stages {

class BuiltInDevice {
public:
    BuiltInDevice() = default;
    BuiltInDevice(const BuiltInDevice&) = delete;
    BuiltInDevice& operator=(const BuiltInDevice&) = delete;
    virtual ~BuiltInDevice() = default;

    /// Sends everything; after join(), once more from the beginning.
    virtual void start(const RunSignals& signals) = 0;
    virtual void join() = 0;

    /// DPDK's name of it.
    [[nodiscard]] virtual const std::string& device() const noexcept = 0;
    /// Frames that found the device's queue full: lost before weir saw them.
    [[nodiscard]] virtual std::uint64_t missed() const noexcept = 0;
    /// Everything was sent, and taken.
    [[nodiscard]] virtual bool drained() const noexcept = 0;
};

/// What a port of the configuration says of its device.
struct BuiltInDeviceConfig {
    std::string text;                             ///< as configured: "sim,format=jungfrau,..."
    std::string port;                             ///< its name
    std::uint32_t sources = 0;                    ///< of the streams that it is for
    std::uint32_t queue_entries = 1024;           ///< of its queue
    std::span<const wire::DeclaredSpec> formats;  ///< declared ones that may be named
};

/// Throws core::UsageError naming the key that is wrong, and core::RunError.
using MakeBuiltInDevice =
    std::function<std::unique_ptr<BuiltInDevice>(const BuiltInDeviceConfig& config, port::BufferPool& pool)>;

}  // namespace weir::stages
