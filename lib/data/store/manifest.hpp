// The manifest: a JSON document whose last member is the checksum of the whole file, so that no byte of it is
// unchecked.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "store/format.hpp"

namespace weir::store {

inline constexpr std::string_view manifest_name = "manifest.json";
inline constexpr std::string_view index_name = "index.weir";
/// Bound for reading: a manifest is configuration and counters, not data.
inline constexpr std::size_t manifest_bytes_max = std::size_t{64} << 20;

/// "events-000007.weir"
std::string segment_name(std::uint32_t segment);

/// Bytes of each block header that `headers_crc32c` counts. Version 1 counts the header's own checksum too, and a CRC
/// over bytes and their CRC is the same whatever the bytes are: there it says how many blocks there are, and no more.
constexpr std::size_t listed_header_bytes(std::uint16_t version) {
    return version < format_version_reduced ? sizeof(BlockHeader) : header_crc_bytes;
}

/// What a manifest says of one of the run's files.
nlohmann::json listed_file(std::string_view name, std::uint64_t bytes, std::uint64_t blocks, std::uint32_t headers_crc);

/// The file's text for `members` (an object without "manifest_crc32c").
std::string manifest_text(const nlohmann::json& members);

/// JSON from a file: null if it is not, or is nested more than a hundred deep.
nlohmann::json parse_json(std::string_view text);

/// The members of a manifest's text. Throws core::RunError if the checksum, the JSON or the version is wrong.
nlohmann::json parse_manifest(std::string_view text);

}  // namespace weir::store
