#include "config/files.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weir::config::detail {

std::filesystem::path config_path(const TableReader& table, std::string_view text) {
    std::filesystem::path path(text);
    if (path.is_relative()) path = std::filesystem::path(table.file()).parent_path() / path;
    std::error_code error;
    return std::filesystem::absolute(path, error).lexically_normal();
}

std::vector<std::filesystem::path> read_files(const TableReader& table, std::string_view key, const toml::node& node) {
    constexpr std::size_t files_max = 4096;
    constexpr std::size_t text_max = 4096;
    std::vector<std::filesystem::path> files;
    const auto append = [&](const toml::node& element) {
        const auto* text = element.as_string();
        const bool good = text != nullptr && !text->get().empty() && text->get().size() <= text_max &&
                          std::ranges::all_of(text->get(), [](unsigned char c) { return c >= 0x20 && c != 0x7f; });
        if (!good)
            fail(table.place(element), table.full_key(key), describe(element), "the name of a file, as a string");
        files.push_back(config_path(table, text->get()));
        // As long as it may be written: what is printed has to read back.
        if (files.back().string().size() > text_max)
            fail(table.place(element), table.full_key(key), "a path that is too long",
                 fmt::format("a path of at most {} bytes", text_max));
    };
    const toml::array* array = node.as_array();
    if (array == nullptr) {
        append(node);
        return files;
    }
    if (array->empty() || array->size() > files_max)
        fail(table.place(node), table.full_key(key), fmt::format("a list of {}", array->size()),
             "a file for each module");
    for (const toml::node& element : *array) append(element);
    return files;
}

nlohmann::json files_json(const std::vector<std::filesystem::path>& files) {
    nlohmann::json out;
    for (const std::filesystem::path& file : files) out.push_back(file.string());
    return out;
}

std::string files_text(const nlohmann::json& files) {
    return toml_text(files.size() == 1 ? files.front() : files);
}

}  // namespace weir::config::detail
