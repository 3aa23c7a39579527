#include "wire/header_kind.hpp"

#include <array>

#include "wire/bytes.hpp"
#include "wire/formats/dune/dune.hpp"
#include "wire/formats/ejfat/ejfat.hpp"
#include "wire/formats/ess/ess.hpp"
#include "wire/formats/sls/sls.hpp"
#include "wire/formats/spead/spead.hpp"

namespace weir::wire {
namespace {

/// slsDetectorPackage, slsSupportLib/include/sls/sls_detector_defs.h: detectorType.
constexpr std::array<std::string_view, 9> sls_types{
    "", "eiger", "gotthard", "jungfrau", "a chip test board", "moench", "mythen3", "gotthard2", "a chip test board"};

bool is_sls(std::span<const std::byte> bytes) noexcept {
    if (bytes.size() < Sls::header_bytes) return false;
    const auto type = std::to_integer<std::uint32_t>(bytes[Sls::type_at]);
    const auto version = std::to_integer<std::uint32_t>(bytes[Sls::version_at]);
    constexpr std::uint32_t version_max = 4;  // newer than those that are known
    return type >= 1 && type < sls_types.size() && version >= 1 && version <= version_max;
}

constexpr std::uint32_t re_reserved = 0x0fff;  ///< of the first 16 bits of a reassembly header

/// Header::type of a reassembly header at `at`; 0 if there is none.
std::uint8_t re_type(std::span<const std::byte> bytes, std::size_t at) noexcept {
    if (bytes.size() < at + sizeof(std::uint16_t)) return 0;
    const std::uint32_t first = load_be<std::uint16_t>(bytes.data() + at);
    return static_cast<std::uint8_t>((first >> 12U) * 16 + ((first & re_reserved) != 0 ? 1 : 0));
}

std::uint8_t re_type_behind_lb(std::span<const std::byte> bytes) noexcept {
    return bytes[3] == std::byte{1} ? re_type(bytes, Ejfat::lb_header_bytes) : std::uint8_t{0};
}

std::string re_text(std::uint8_t type) {
    if (type == 0) return "no RE header";
    return "RE header version " + std::to_string(type >> 4U) + (type % 16 != 0 ? " with reserved bits set" : "");
}

/// Also of a version that is newer than those that are known.
bool is_ejfat(std::span<const std::byte> bytes, std::uint32_t payload_bytes) noexcept {
    if (bytes.size() < Ejfat::re_header_bytes) return false;
    const auto first = load_be<std::uint16_t>(bytes.data());
    constexpr std::uint32_t version_max = 4;
    if ((first & re_reserved) != 0 || first >> 12U == 0 || first >> 12U > version_max) return false;
    const std::uint64_t end = std::uint64_t{load_be<std::uint32_t>(bytes.data() + 4)} + payload_bytes;
    return end <= std::uint64_t{load_be<std::uint32_t>(bytes.data() + 8)} + Ejfat::re_header_bytes;
}

/// The block length says how long the datagram is, to the word.
bool is_dune(std::span<const std::byte> bytes, std::uint32_t payload_bytes) noexcept {
    if (bytes.size() < Dune::header_bytes + Dune::word_bytes) return false;
    const auto words = static_cast<std::uint32_t>(load_le<std::uint64_t>(bytes.data()) >> Dune::block_length_shift);
    const std::uint32_t there = (payload_bytes - Dune::header_bytes) / Dune::word_bytes;
    return words == there || words == there + 1;
}

}  // namespace

Header recognise(std::span<const std::byte> bytes, std::uint32_t payload_bytes) noexcept {
    constexpr std::size_t magic_bytes = 8;
    if (bytes.size() < magic_bytes) return {};
    const auto first = load_be<std::uint16_t>(bytes.data());
    const auto version = std::to_integer<std::uint8_t>(bytes[2]);
    if (first == Ejfat::lb_magic) return {HeaderKind::ejfat_lb, re_type_behind_lb(bytes), version};
    if (first == Ejfat::sync_magic) return {HeaderKind::ejfat_sync, 0, version};
    if (first == Spead::magic) return {HeaderKind::spead, 0, 0};
    if ((load_le<std::uint32_t>(bytes.data() + 2) & 0xff'ffffU) == Ess::magic)
        return {HeaderKind::ess, 0, std::to_integer<std::uint8_t>(bytes[1])};
    constexpr std::uint32_t vmm3 = 0x564D33;  // "VM3", docs/reference/formats/srs.md
    if (load_be<std::uint32_t>(bytes.data() + 4) >> 8U == vmm3) return {HeaderKind::srs, 0, 0};
    if (is_sls(bytes))
        return {HeaderKind::sls, std::to_integer<std::uint8_t>(bytes[Sls::type_at]),
                std::to_integer<std::uint8_t>(bytes[Sls::version_at])};
    if (is_ejfat(bytes, payload_bytes)) return {HeaderKind::ejfat, re_type(bytes, 0), 0};
    if (is_dune(bytes, payload_bytes)) return {HeaderKind::dune, 0, 0};
    return {};
}

std::string header_text(const Header& header) {
    switch (header.kind) {
        case HeaderKind::sls:
            return std::string(header.type < sls_types.size() ? sls_types[header.type] : "") +
                   " (slsDetector header version " + std::to_string(header.version) + ")";
        case HeaderKind::ejfat:
            return "ejfat (" + re_text(header.type) + ")";
        case HeaderKind::ejfat_lb:
            return "ejfat (load balancer header \"LB\" version " + std::to_string(header.version) + ", " +
                   re_text(header.type) + ")";
        case HeaderKind::ejfat_sync:
            return "ejfat (\"LC\", a message for the load balancer's control plane)";
        case HeaderKind::ess:
            return "ess (cookie \"ESS\", version " + std::to_string(header.version) + ")";
        case HeaderKind::spead:
            return "spead (magic 0x5304)";
        case HeaderKind::srs:
            return "srs (\"VM3\")";
        case HeaderKind::dune:
            return "dune (a block length that fits)";
        case HeaderKind::unknown:
            break;
    }
    return {};
}

std::string_view header_format(const Header& header) noexcept {
    switch (header.kind) {
        case HeaderKind::sls:
            return header.type < sls_types.size() ? sls_types[header.type] : std::string_view{};
        case HeaderKind::ejfat:
        case HeaderKind::ejfat_lb:
        case HeaderKind::ejfat_sync:
            return Ejfat::name;
        case HeaderKind::ess:
            return Ess::name;
        case HeaderKind::spead:
            return Spead::name;
        case HeaderKind::srs:
            return "srs";
        case HeaderKind::dune:
            return Dune::name;
        case HeaderKind::unknown:
            break;
    }
    return {};
}

}  // namespace weir::wire
