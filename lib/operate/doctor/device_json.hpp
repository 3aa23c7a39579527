// DeviceFacts on their way from one process to another.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "doctor/host_facts.hpp"

namespace weir::doctor {

[[nodiscard]] nlohmann::json devices_json(const std::vector<DeviceFacts>& devices);
[[nodiscard]] std::vector<DeviceFacts> devices_of(const nlohmann::json& json);

}  // namespace weir::doctor
