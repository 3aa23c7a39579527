// How the two sides tell each other what a receiver takes.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

namespace weir::bench {

/// What a receiver takes, as its sender has to know it.
struct FrameKind {
    enum class Is : std::uint8_t { udp, roce_send, roce_write };
    Is is = Is::udp;
    // Of RoCE, and of WRITE: each packet is written to the next of these places.
    std::uint32_t qp = 0;
    std::uint32_t rkey = 0;
    std::uint64_t va = 0;
    std::uint32_t places = 1;
    std::uint32_t place_bytes = 0;
    friend bool operator==(const FrameKind&, const FrameKind&) = default;
};

[[nodiscard]] nlohmann::json to_json(const FrameKind& frames);
/// Throws nlohmann::json::exception, or core::RunError for a kind that this version does not know.
[[nodiscard]] FrameKind frames_from_json(const nlohmann::json& json);

}  // namespace weir::bench
