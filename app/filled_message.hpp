// A stored message with zeros where bytes are missing, and how large that makes an event: a record of a few bytes can
// speak of 4 GiB that never came.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/event_scanner.hpp"

namespace weir::app {

/// An event larger than this is not given out unless somebody asks for more.
constexpr std::uint64_t event_bytes_max_default = std::uint64_t{2} << 30;

/// Called with a place in the message, and the bytes that came there.
using PieceSink = std::function<void(std::uint64_t offset, std::span<const std::byte> piece)>;
/// Cuts what came of a message, which is stored without its gaps, into pieces between them. An empty message is one
/// empty piece; a message of which nothing came is none.
void for_each_piece(const store::SourceInfo& source, std::span<const std::byte> received, const PieceSink& sink);

/// Of the message with its gaps; where its size was never learnt, up to the last byte that came.
[[nodiscard]] std::uint64_t filled_bytes(const store::SourceInfo& source);
/// Of the event: all of its sources, or `only` this one; with gaps unless the payload was reduced.
[[nodiscard]] std::uint64_t filled_bytes(const store::EventInfo& event, std::optional<std::uint32_t> only);

/// Appends the message with zeros where bytes are missing.
void append_filled(const store::SourceInfo& source, std::span<const std::byte> received, std::vector<std::byte>& to);

/// "it has 8.0 TiB with its missing bytes filled in, at most 2.0 GiB is taken"; empty if it is not too large.
[[nodiscard]] std::string too_large_text(std::uint64_t bytes, std::uint64_t received, std::uint64_t bytes_max);

}  // namespace weir::app
