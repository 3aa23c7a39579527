// The manifest's text and checksum. See manifest.hpp.
#include "store/manifest.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <span>

#include "core/crc32c.hpp"
#include "core/error.hpp"
#include "core/foreign_json.hpp"
#include "store/format.hpp"

namespace weir::store {

namespace {

constexpr std::string_view checksum_key = ",\n \"manifest_crc32c\": \"";
constexpr std::string_view ending = "\"\n}\n";
constexpr std::size_t digits = 8;
constexpr std::size_t tail_bytes = checksum_key.size() + digits + ending.size();

/// The checksum counts everything before its own digits; what follows them is fixed.
std::string tail(std::string_view before) {
    const std::uint32_t crc = core::crc32c(std::as_bytes(std::span(before)));
    return fmt::format("{}{:08x}{}", checksum_key, crc, ending);
}

}  // namespace

nlohmann::json parse_json(std::string_view text) {
    return core::read_json(text).value_or(nullptr);
}

std::string segment_name(std::uint32_t segment) {
    return fmt::format("events-{:06}.weir", segment);
}

nlohmann::json listed_file(std::string_view name, std::uint64_t bytes, std::uint64_t blocks,
                           std::uint32_t headers_crc) {
    return {
        {"file", name}, {"bytes", bytes}, {"blocks", blocks}, {"headers_crc32c", fmt::format("{:08x}", headers_crc)}};
}

std::string manifest_text(const nlohmann::json& members) {
    std::string text = members.dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
    text.resize(text.size() - 2);  // "\n}" comes after the checksum
    return text + tail(text);
}

nlohmann::json parse_manifest(std::string_view text) {
    if (text.size() < tail_bytes) throw core::RunError("the manifest is cut off");
    const std::string_view before = text.substr(0, text.size() - tail_bytes);
    if (text.substr(before.size()) != tail(before)) throw core::RunError("the manifest does not match its checksum");
    nlohmann::json members = parse_json(text);
    if (!members.is_object()) throw core::RunError("the manifest is not a JSON object");
    members.erase("manifest_crc32c");
    const auto version = members.find("version");
    if (version == members.end() || (*version != format_version && *version != format_version_reduced))
        throw core::RunError(
            fmt::format("the manifest's version is neither {} nor {}", format_version, format_version_reduced));
    return members;
}

}  // namespace weir::store
