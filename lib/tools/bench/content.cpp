#include "bench/content.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace weir::bench {
namespace {

// A line of the control connection has at most 1 MiB.
constexpr std::size_t piece_bytes = 256U << 10;

std::string hex_of(const std::byte* bytes, std::size_t count) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string hex(2 * count, '0');
    for (std::size_t i = 0; i < count; ++i) {
        const auto value = std::to_integer<unsigned>(bytes[i]);
        hex[2 * i] = digits[value >> 4];
        hex[2 * i + 1] = digits[value & 15];
    }
    return hex;
}

void append_hex(std::string_view hex, std::vector<std::byte>& bytes) {
    for (std::size_t at = 0; at < hex.size(); at += 2) {
        unsigned value = 0;
        const char* const end = hex.data() + std::min(at + 2, hex.size());
        const auto [stop, error] = std::from_chars(hex.data() + at, end, value, 16);
        if (error != std::errc() || stop != hex.data() + at + 2) throw core::RunError("content that is no hex");
        bytes.push_back(static_cast<std::byte>(value));
    }
}

}  // namespace

Content read_content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::vector<char> bytes(content_bytes_max);
    if (file) file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    // The end of a short file is no failure, a folder's is.
    if (file.bad() || (!file && !file.eof())) throw core::RunError(fmt::format("{}: {}", path, std::strerror(errno)));
    const auto* const first = reinterpret_cast<const std::byte*>(bytes.data());
    return std::make_shared<std::vector<std::byte>>(first, first + file.gcount());
}

std::vector<nlohmann::json> content_messages(const Content& content) {
    std::vector<nlohmann::json> messages;
    for (std::size_t at = 0; at < content->size(); at += piece_bytes) {
        const std::size_t count = std::min(piece_bytes, content->size() - at);
        messages.push_back({{"type", "content"},
                            {"hex", hex_of(content->data() + at, count)},
                            {"last", at + count == content->size()}});
    }
    return messages;
}

void ContentReader::add(const nlohmann::json& message) {
    if (content_) {
        content_.reset();
        bytes_.clear();
    }
    const std::string hex = message.at("hex");
    if (bytes_.size() + hex.size() / 2 > content_bytes_max)
        throw core::RunError(fmt::format("content has at most {} MiB", content_bytes_max >> 20));
    append_hex(hex, bytes_);
    if (message.at("last").get<bool>()) content_ = std::make_shared<std::vector<std::byte>>(std::move(bytes_));
}

}  // namespace weir::bench
