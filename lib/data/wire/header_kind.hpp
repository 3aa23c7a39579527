// What a datagram that a stream's decoder refused looks like: the detector or framing that its own header names. For
// sentences about a wrong configuration, never for data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace weir::wire {

enum class HeaderKind : std::uint8_t { unknown, sls, ejfat, ejfat_lb, ejfat_sync, ess, spead, srs, dune };

struct Header {
    HeaderKind kind = HeaderKind::unknown;
    std::uint8_t type = 0;     ///< sls: detector type; ejfat: RE version * 16, + 1: reserved bits are set
    std::uint8_t version = 0;  ///< sls, ess and the load balancer: of the header

    /// In 24 bits, for a table of counts.
    [[nodiscard]] std::uint32_t packed() const noexcept {
        return static_cast<std::uint32_t>(kind) << 16U | std::uint32_t{type} << 8U | version;
    }
    [[nodiscard]] static Header unpack(std::uint32_t value) noexcept {
        return {static_cast<HeaderKind>(value >> 16U & 0xffU), static_cast<std::uint8_t>(value >> 8U),
                static_cast<std::uint8_t>(value)};
    }
};

/// By marks that do not occur by chance; `unknown` where there is none. Reads at most the first 48 bytes that are in
/// `bytes`, which are the beginning of a UDP payload of `payload_bytes`.
[[nodiscard]] Header recognise(std::span<const std::byte> bytes, std::uint32_t payload_bytes) noexcept;

/// "eiger (slsDetector header, version 2)"; empty for `unknown`.
[[nodiscard]] std::string header_text(const Header& header);

/// The name of the format that has such headers: "eiger". Empty for `unknown`.
[[nodiscard]] std::string_view header_format(const Header& header) noexcept;

}  // namespace weir::wire
