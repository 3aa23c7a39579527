// What the simulator knows of a format that it can send: an entry for each, made in a file of its own (formats/).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulate/simulator_config.hpp"
#include "simulate/simulator_content.hpp"

namespace weir::simulate {

/// A packet as the simulator plans it: which part of which message it carries.
struct SimulatedPacket {
    std::uint64_t event = 0;
    std::uint32_t source = 0;
    std::uint32_t index = 0;    ///< in its message
    std::uint32_t counter = 0;  ///< of all packets of its source
    std::uint32_t offset = 0;   ///< of its content in the message
    std::uint32_t total = 0;    ///< bytes of the message
};

/// The packets of one format. The configuration and the context that it is made with outlive it.
class SimulatedFormat {
public:
    SimulatedFormat() = default;
    SimulatedFormat(const SimulatedFormat&) = delete;
    SimulatedFormat& operator=(const SimulatedFormat&) = delete;
    virtual ~SimulatedFormat() = default;

    /// Writes the header into a datagram (header and content) whose content is there already.
    virtual void put_header(const SimulatedPacket& packet, std::span<std::byte> datagram) const noexcept = 0;
    /// Bytes of a message from `offset` on: the same as often as it is asked.
    virtual void content(std::uint64_t event, std::uint32_t source, std::uint32_t offset,
                         std::span<std::byte> out) noexcept = 0;
};

/// A format that does not care what it carries.
class SimulatedBytes : public SimulatedFormat {
public:
    explicit SimulatedBytes(const SimulatorConfig& config) : content_(config.seed) {}
    void content(std::uint64_t event, std::uint32_t source, std::uint32_t offset,
                 std::span<std::byte> out) noexcept override {
        content_.copy(event, source, offset, out.data(), out.size());
    }

private:
    MessageContent content_;
};

/// What is empty or null does not apply to the format.
struct SimulationEntry {
    std::string_view name;  ///< as in wire::formats()
    /// What is known of its packets: bytes of the header, and sizes where they are fixed. Throws core::UsageError.
    wire::FormatContext (*context)(const SimulatorConfig& config);
    std::unique_ptr<SimulatedFormat> (*make)(const SimulatorConfig& config, const wire::FormatContext& context);

    std::uint16_t port = 50001;         ///< that the first source sends to; slsDetectorPackage's
    std::uint16_t source_port = 32410;  ///< slsDetectorPackage's, too
    bool fixed_packets = false;         ///< they have one size, and are never fragmented
    bool one_datagram = false;          ///< over udp, a message is never more than one datagram
    bool over_roce = false;
    /// Messages are frames of rows of so many bytes, all of one size: by WRITE they go row by row into the receiver's
    /// memory, and an immediate ends them.
    std::uint32_t (*row_bytes)(const SimulatorConfig& config) = nullptr;
    bool load_balancer = false;  ///< --lb is its
    /// Whether messages, if nobody says how large they are, are as large as a datagram.
    bool (*fills_datagram)(const SimulatorConfig& config) = nullptr;
    /// Throws core::UsageError for what this format cannot send.
    void (*check)(const SimulatorConfig& config, const wire::FormatContext& context) = nullptr;
};

/// All of them, `declared` among them.
[[nodiscard]] std::span<const SimulationEntry> simulated_formats();
/// By name; null if it cannot be sent.
[[nodiscard]] const SimulationEntry* find_simulated(std::string_view name);
/// Those that need no description.
[[nodiscard]] std::vector<std::string_view> simulated_names();
/// Makes `config` send the format of this name: one of weir's own, or one of those described. False if it is neither.
[[nodiscard]] bool choose_format(SimulatorConfig& config, std::string_view name,
                                 std::span<const wire::DeclaredSpec> described);

/// For formats without sizes of their own.
template <std::uint32_t header_bytes>
wire::FormatContext header_only(const SimulatorConfig& /*config*/) {
    return {.header_bytes = header_bytes};
}
template <class Frames>
std::unique_ptr<SimulatedFormat> make_simulated(const SimulatorConfig& config, const wire::FormatContext& context) {
    return std::make_unique<Frames>(config, context);
}

}  // namespace weir::simulate
