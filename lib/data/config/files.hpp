// Keys that name files.
#pragma once

#include <filesystem>
#include <vector>

#include "config/parts.hpp"

namespace weir::config::detail {

/// A path in the configuration: relative ones start at the configuration's folder, and the result is absolute, so that
/// what --print-config shows means the same from everywhere. Nothing is opened.
std::filesystem::path config_path(const TableReader& table, std::string_view text);

/// A file name, or a list of them, in `node`, which is what `key` has or a part of it.
std::vector<std::filesystem::path> read_files(const TableReader& table, std::string_view key, const toml::node& node);
/// For reports; null if there are none.
nlohmann::json files_json(const std::vector<std::filesystem::path>& files);

/// As they are written: one, or a list of them.
std::string files_text(const nlohmann::json& files);

/// A key that takes one file, or a list of them.
template <class T>
options::Option<T> add_files(options::OptionTable<T>& out, std::string_view key, std::string kind,
                             std::vector<std::filesystem::path> T::*member, std::string_view meaning) {
    return out.add(key, std::move(kind), meaning)
        .reads([key = std::string(key), member](TableReader& table, T& into) {
            into.*member = read_files(table, key, *table.get(key));
        })
        .shows([member](const T& from) { return files_json(from.*member); })
        .written(files_text);
}

}  // namespace weir::config::detail
