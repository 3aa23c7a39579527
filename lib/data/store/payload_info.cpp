// See payload_info.hpp.
#include "store/payload_info.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "store/json_members.hpp"

namespace weir::store {

namespace {

template <std::size_t size>
std::optional<std::size_t> place_in(const std::array<std::string_view, size>& names, const std::string& name) {
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end()) return {};
    return static_cast<std::size_t>(at - names.begin());
}

/// IEEE 754 binary16.
float from_half(std::uint16_t half) {
    const int exponent = half >> 10 & 0x1f;
    const int fraction = half & 0x3ff;
    float value = 0;
    if (exponent == 0x1f)
        value = fraction != 0 ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity();
    else if (exponent == 0)
        value = std::ldexp(static_cast<float>(fraction), -24);
    else
        value = std::ldexp(static_cast<float>(fraction | 0x400), exponent - 25);
    return (half & 0x8000) != 0 ? -value : value;
}

float from_marked(std::int32_t value, std::int32_t bad, std::int32_t saturated) {
    if (value == bad) return std::numeric_limits<float>::quiet_NaN();
    if (value == saturated) return std::numeric_limits<float>::infinity();
    return static_cast<float>(value);
}

float value_at(reduce::PixelType type, const std::byte* at) {
    if (type == reduce::PixelType::f32) {
        float value = 0;
        std::memcpy(&value, at, sizeof value);
        return value;
    }
    std::uint16_t bits = 0;
    std::memcpy(&bits, at, sizeof bits);
    if (type == reduce::PixelType::f16) return from_half(bits);
    if (type == reduce::PixelType::i16) return from_marked(static_cast<std::int16_t>(bits), -32768, 32767);
    return from_marked(bits, 65535, 65534);
}

}  // namespace

PayloadInfo payload_of(const RunReader& run) {
    const nlohmann::json* payload = &at_or_null(run.manifest(), "payload");
    if (!payload->is_object()) payload = &at_or_null(at_or_null(run.start(), "start"), "payload");
    PayloadInfo info;
    const auto content = place_in(content_names, text_at(*payload, "content"));
    if (!content) return info;
    if (static_cast<Content>(*content) == Content::pixels) {
        const auto type = place_in(reduce::pixel_type_names, text_at(*payload, "type"));
        const std::uint64_t columns = number_at(*payload, "columns").value_or(0);
        if (!type || columns == 0 || columns > UINT16_MAX) return info;
        info.type = static_cast<reduce::PixelType>(*type);
        info.columns = static_cast<std::uint32_t>(columns);
        info.unit = text_at(*payload, "unit");
    }
    info.fragment_types = at_or_null(*payload, "types") != false;
    info.content = static_cast<Content>(*content);
    return info;
}

std::vector<float> energies_of(reduce::PixelType type, std::span<const std::byte> bytes) {
    const std::size_t size = reduce::bytes_of(type);
    std::vector<float> values(bytes.size() / size);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = value_at(type, bytes.data() + i * size);
    return values;
}

}  // namespace weir::store
