// JSON schemas of what options may be, for programs that write configurations.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

namespace weir::options {

struct Bounds;
struct Explained;

[[nodiscard]] nlohmann::json integer_schema(Bounds bounds);
[[nodiscard]] nlohmann::json number_schema(double min, double max);
/// A number of bytes, or text like "16MiB".
[[nodiscard]] nlohmann::json size_schema(Bounds bounds);
[[nodiscard]] nlohmann::json boolean_schema();
[[nodiscard]] nlohmann::json text_schema();
/// One of these.
[[nodiscard]] nlohmann::json words_schema(const std::vector<std::string_view>& words);
[[nodiscard]] nlohmann::json name_schema();
/// One integer, a range as text, or a list of both.
[[nodiscard]] nlohmann::json integers_schema(Bounds bounds);
[[nodiscard]] nlohmann::json one_or_more_schema(nlohmann::json of_one);
/// Of a table with these keys and no others. Which keys go with which is not in it.
[[nodiscard]] nlohmann::json table_schema(const std::vector<Explained>& keys);

}  // namespace weir::options
