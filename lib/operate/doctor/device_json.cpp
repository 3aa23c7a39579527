#include "doctor/device_json.hpp"

#include <nlohmann/json.hpp>

namespace weir::doctor {

namespace {

/// One list of the fields serves both ways.
template <class Facts, class Field>
void plain_fields(Facts& facts, const Field& field) {
    field("port", facts.port);
    field("not_opened", facts.not_opened);
    field("driver", facts.driver);
    field("mtu", facts.mtu);
    field("link_up", facts.link_up);
    field("mbps", facts.mbps);
    field("firmware", facts.firmware);
    field("rx_descriptors", facts.rx_descriptors);
    field("rx_descriptors_max", facts.rx_descriptors_max);
    field("node", facts.node);
    field("pause_counters", facts.pause_counters);
}

template <class T>
nlohmann::json known_json(const Known<T>& known, const nlohmann::json& value) {
    return known ? nlohmann::json{{"value", value}} : nlohmann::json{{"why", known.why}};
}

}  // namespace

nlohmann::json devices_json(const std::vector<DeviceFacts>& devices) {
    nlohmann::json all = nlohmann::json::array();
    for (const DeviceFacts& device : devices) {
        nlohmann::json json;
        plain_fields(device, [&](const char* name, const auto& value) { json[name] = value; });
        json["flow_control"] =
            known_json(device.flow_control, device.flow_control ? nlohmann::json(*device.flow_control) : nullptr);
        nlohmann::json rules = nlohmann::json::array();
        if (device.rules)
            for (const RuleOutcome& rule : *device.rules)
                rules.push_back(
                    {{"rule", rule.rule}, {"effect", static_cast<int>(rule.effect)}, {"remark", rule.remark}});
        json["rules"] = known_json(device.rules, rules);
        all.push_back(std::move(json));
    }
    return all;
}

std::vector<DeviceFacts> devices_of(const nlohmann::json& json) {
    std::vector<DeviceFacts> devices;
    for (const nlohmann::json& one : json) {
        DeviceFacts device;
        plain_fields(device, [&](const char* name, auto& value) { one.at(name).get_to(value); });
        const nlohmann::json& flow = one.at("flow_control");
        device.flow_control = flow.contains("value") ? Known<std::string>(flow["value"].get<std::string>())
                                                     : Known<std::string>::no(flow.at("why").get<std::string>());
        const nlohmann::json& rules = one.at("rules");
        if (rules.contains("value")) {
            std::vector<RuleOutcome> outcomes;
            for (const nlohmann::json& rule : rules["value"])
                outcomes.push_back({rule.at("rule").get<std::string>(),
                                    static_cast<RuleOutcome::Effect>(rule.at("effect").get<int>()),
                                    rule.at("remark").get<std::string>()});
            device.rules = outcomes;
        } else {
            device.rules = Known<std::vector<RuleOutcome>>::no(rules.at("why").get<std::string>());
        }
        devices.push_back(std::move(device));
    }
    return devices;
}

}  // namespace weir::doctor
