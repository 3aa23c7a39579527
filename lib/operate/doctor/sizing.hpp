// How large a machine has to be for a detector: sums over what was measured on one core (docs/internals/BENCHMARKS.md).
// Estimates, good to a factor of two; they say which part of a machine is out of the question, and which has plenty.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::doctor {

/// What a detector sends. Zeros: not said.
struct Load {
    double bits_per_s = 0;           ///< of frames on the wire
    std::uint32_t packet_bytes = 0;  ///< of a frame
    std::uint64_t event_bytes = 0;
    double events_per_s = 0;  ///< 0: as many as the rate makes of that size

    [[nodiscard]] bool known() const noexcept { return bits_per_s > 0; }
    [[nodiscard]] double bytes_per_s() const noexcept { return bits_per_s / 8; }
};

/// What that takes.
struct Size {
    double packets_per_s = 0;
    double events_per_s = 0;
    std::uint32_t rx = 0;  ///< lcores
    std::uint32_t build = 0;
    std::uint32_t work = 0;       ///< events as they are
    std::uint32_t work_zstd = 0;  ///< compressed by zstd at level 1
    std::uint64_t memory_bytes = 0;
    double memory_bytes_per_s = 0;  ///< that go over the memory's bus
    double disk_bytes_per_s = 0;    ///< uncompressed

    [[nodiscard]] std::uint32_t lcores() const noexcept { return rx + build + work; }
};

/// Where packet or event size is not said, 8240 bytes and 1 MiB. `timeout_ms` of the events.
[[nodiscard]] Size size_for(const Load& load, double timeout_ms = 500);

/// The sums in words: which measurements, which reserves.
[[nodiscard]] std::string sizing_basis();
/// A table for the usual rates and sizes, or of this load alone, as Markdown.
[[nodiscard]] std::string sizing_markdown(const std::optional<Load>& load);

/// "100Gb/s", "12.5GB/s", "40G": bits per second. Throws core::UsageError, naming `option`.
[[nodiscard]] double parse_bit_rate(std::string_view text, std::string_view option);
/// "100 Gb/s", "1.2 GB/s".
[[nodiscard]] std::string bit_rate_text(double bits_per_s);
[[nodiscard]] std::string byte_rate_text(double bytes_per_s);
[[nodiscard]] std::string bytes_text(double bytes);

}  // namespace weir::doctor
