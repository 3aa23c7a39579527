// One packet, field by field, beside what is expected of it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "probe/findings.hpp"
#include "probe/packet_sample.hpp"

namespace weir::probe {

struct ViewedField {
    std::string layer;
    std::string name;
    std::uint32_t offset = 0;  ///< in the frame
    std::uint32_t bytes = 0;
    std::string value;
    std::string meaning;
    std::string problem;  ///< empty: as it should be
};

struct PacketView {
    std::vector<ViewedField> fields;
    std::string counter;                ///< where weir counts it; empty: it goes into an event
    std::string explanation;            ///< of the counter
    std::string expected;               ///< the format that it was compared with
    std::vector<std::string> problems;  ///< what no single field shows
};

/// `sample` and `findings` say which format the packet's flow has.
[[nodiscard]] PacketView view_packet(std::span<const std::byte> frame, std::uint32_t wire_bytes,
                                     const PacketSample& sample, const Findings& findings);

[[nodiscard]] std::string view_text(const PacketView& view);
[[nodiscard]] nlohmann::json view_json(const PacketView& view);

}  // namespace weir::probe
