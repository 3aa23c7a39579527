// Whose run it is, by the name of its directory. See builder_name.hpp.
#include "store/builder_name.hpp"

#include <cctype>
#include <string_view>

namespace weir::store {

namespace {

/// `word` is in `text`, and neither a letter nor a digit beside it.
bool has_word(std::string_view text, std::string_view word) {
    if (word.empty()) return false;
    const auto ends_word = [&](std::size_t at) {
        return at >= text.size() || std::isalnum(static_cast<unsigned char>(text[at])) == 0;
    };
    for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1))
        if ((at == 0 || ends_word(at - 1)) && ends_word(at + word.size())) return true;
    return false;
}

}  // namespace

std::string final_name_of(const std::filesystem::path& path) {
    constexpr std::string_view ending = ".part";
    const std::string name = path.filename().string();
    if (!name.starts_with('.') || !name.ends_with(ending) || name.size() <= 1 + ending.size()) return path.string();
    return (path.parent_path() / name.substr(1, name.size() - 1 - ending.size())).string();
}

std::string builder_in_name(const std::vector<ClusterNodeName>& nodes, const std::filesystem::path& path) {
    const std::string name = final_name_of(path);
    std::string best;
    for (const ClusterNodeName& node : nodes)
        if (node.role == "builder" && node.name.size() > best.size() && has_word(name, node.name)) best = node.name;
    return best;
}

}  // namespace weir::store
