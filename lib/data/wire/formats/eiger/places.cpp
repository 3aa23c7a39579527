// Where the tiles of EIGER's ports stand. A half module is two tiles wide, an even column and the odd one beside it.
// Its first port has the even one, except in bottom half modules: there the columns are the other way round, and the
// rows are sent from the bottom.
#include <algorithm>
#include <map>
#include <utility>

#include "wire/formats/eiger/eiger.hpp"

namespace weir::wire {
namespace {

/// Row and column in the whole detector.
using Tile = std::pair<std::uint32_t, std::uint32_t>;

struct TileBox {
    Tile first;
    Tile last;
};

TileBox box_of(const std::map<Tile, std::size_t>& sources) {
    TileBox box{sources.begin()->first, sources.begin()->first};
    for (const auto& [tile, source] : sources) {
        box.first.second = std::min(box.first.second, tile.second & ~1U);
        box.last = {tile.first, std::max(box.last.second, tile.second | 1U)};  // rows come in order
    }
    box.first.second &= ~1U;
    box.last.second |= 1U;
    return box;
}

/// Puts the one source of which nothing came into the only place that is left.
void add_absent(std::map<Tile, std::size_t>& sources, std::size_t absent) {
    const TileBox box = box_of(sources);
    for (std::uint32_t row = box.first.first; row <= box.last.first; ++row)
        for (std::uint32_t column = box.first.second; column <= box.last.second; ++column)
            if (sources.try_emplace({row, column}, absent).second) return;
}

std::uint64_t tiles_in(const TileBox& box) {
    return std::uint64_t{box.last.first - box.first.first + 1} * (box.last.second - box.first.second + 1);
}

}  // namespace

std::vector<ImagePlace> eiger_places(std::span<const std::span<const std::byte>> headers) {
    std::map<Tile, std::size_t> sources;
    std::vector<std::size_t> absent;
    for (std::size_t i = 0; i < headers.size(); ++i) {
        if (headers[i].size() < Sls::header_bytes) {
            absent.push_back(i);
            continue;
        }
        const Tile tile{load_le<std::uint16_t>(headers[i].data() + Sls::row_at),
                        load_le<std::uint16_t>(headers[i].data() + Sls::row_at + 2)};
        if (!sources.try_emplace(tile, i).second) return {};  // nobody has told the modules where they are
    }
    if (sources.empty() || absent.size() > 1) return {};
    // Mostly empty is no detector, but numbers that mean something else.
    const std::uint64_t tiles = tiles_in(box_of(sources));
    if (tiles > std::uint64_t{4} * headers.size() || (!absent.empty() && tiles != headers.size())) return {};
    if (!absent.empty()) add_absent(sources, absent.front());
    std::vector<ImagePlace> places(headers.size());
    const std::uint32_t top = sources.begin()->first.first;
    const std::uint32_t left =
        std::ranges::min_element(sources, {}, [](const auto& one) { return one.first.second; })->first.second;
    for (const auto& [tile, source] : sources) {
        const auto beside = sources.find({tile.first, tile.second ^ 1U});
        const bool reversed = beside != sources.end() && (source < beside->second) != (tile.second % 2 == 0);
        places[source] = {tile.first - top, tile.second - left, reversed};
    }
    return places;
}

}  // namespace weir::wire
