// What compressed images are called in a stream, and which of weir's codecs that is.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "reduce/pack/codec.hpp"

namespace weir::stream {

/// `bslz4` and `lz4` are DECTRIS' own; `bszstd` is what Jungfraujoch added.
inline constexpr std::array<std::pair<std::string_view, reduce::pack::Codec>, 3> compressions{
    {{"bslz4", reduce::pack::Codec::bitshuffle_lz4},
     {"lz4", reduce::pack::Codec::lz4},
     {"bszstd", reduce::pack::Codec::bitshuffle_zstd}}};

/// Empty: a stream has no name for it.
constexpr std::string_view compression_name(reduce::pack::Codec codec) noexcept {
    for (const auto& [name, its_codec] : compressions)
        if (its_codec == codec) return name;
    return {};
}

constexpr std::optional<reduce::pack::Codec> compression_named(std::string_view wanted) noexcept {
    for (const auto& [name, codec] : compressions)
        if (name == wanted) return codec;
    return std::nullopt;
}

}  // namespace weir::stream
