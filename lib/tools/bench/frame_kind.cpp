#include "bench/frame_kind.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/error.hpp"

namespace weir::bench {
namespace {

constexpr std::array<std::string_view, 3> frame_kinds{"udp", "roce-send", "roce-write"};

}  // namespace

nlohmann::json to_json(const FrameKind& frames) {
    nlohmann::json json{{"kind", frame_kinds[static_cast<std::size_t>(frames.is)]}};
    if (frames.is == FrameKind::Is::udp) return json;
    json["qp"] = frames.qp;
    if (frames.is != FrameKind::Is::roce_write) return json;
    json["rkey"] = frames.rkey;
    json["va"] = frames.va;
    json["places"] = frames.places;
    json["place_bytes"] = frames.place_bytes;
    return json;
}

FrameKind frames_from_json(const nlohmann::json& json) {
    const auto kind = json.at("kind").get<std::string>();
    const auto* const found = std::ranges::find(frame_kinds, kind);
    if (found == frame_kinds.end()) throw core::RunError(fmt::format("the server takes frames \"{}\"", kind));
    FrameKind frames;
    frames.is = static_cast<FrameKind::Is>(found - frame_kinds.begin());
    frames.qp = json.value("qp", 0U);
    frames.rkey = json.value("rkey", 0U);
    frames.va = json.value("va", std::uint64_t{0});
    frames.places = std::max(1U, json.value("places", 1U));
    frames.place_bytes = json.value("place_bytes", 0U);
    return frames;
}

}  // namespace weir::bench
