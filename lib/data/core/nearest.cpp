#include "core/nearest.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace weir::core {

std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i + 1;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({substituted, row[j] + 1, row[j + 1] + 1});
        }
    }
    return row.back();
}

namespace {

std::vector<std::string_view> words_of(std::string_view name) {
    std::vector<std::string_view> words;
    while (!name.empty()) {
        const std::size_t end = std::min(name.find_first_of("._- "), name.size());
        if (end > 0) words.push_back(name.substr(0, end));
        name.remove_prefix(std::min(end + 1, name.size()));
    }
    return words;
}

/// Of `words`, how many letters are in words that `others` has, a letter in three misspelt at most.
std::size_t letters_shared(const std::vector<std::string_view>& words, const std::vector<std::string_view>& others) {
    std::size_t letters = 0;
    for (const std::string_view word : words)
        if (std::ranges::any_of(others,
                                [&](std::string_view other) { return edit_distance(word, other) * 3 <= word.size(); }))
            letters += word.size();
    return letters;
}

}  // namespace

std::vector<std::string> closest(std::string_view word, const std::vector<std::string>& candidates,
                                 std::size_t distance_max) {
    std::vector<std::pair<std::size_t, std::string>> near;
    for (const std::string& candidate : candidates) {
        const std::size_t distance = edit_distance(word, candidate);
        if (distance <= distance_max) near.emplace_back(distance, candidate);
    }
    std::sort(near.begin(), near.end());
    std::vector<std::string> names;
    for (std::size_t i = 0; i < near.size() && i < 3; ++i) names.push_back(near[i].second);
    return names;
}

std::vector<std::string> similar_names(std::string_view name, const std::vector<std::string>& candidates) {
    struct Near {
        std::size_t letters;
        std::size_t edits;
        std::string_view name;
    };
    const std::vector<std::string_view> words = words_of(name);
    if (words.empty()) return {};
    std::vector<Near> near;
    for (const std::string& candidate : candidates) {
        std::size_t edits = edit_distance(name, candidate);
        for (std::size_t dot = candidate.find('.'); dot != std::string::npos; dot = candidate.find('.', dot + 1))
            edits = std::min(edits, edit_distance(name, std::string_view(candidate).substr(dot + 1)));
        const std::size_t letters = letters_shared(words, words_of(candidate));
        if (letters * 2 >= name.size() || edits * 4 <= name.size()) near.push_back({letters, edits, candidate});
    }
    // What is a few typing errors away comes first, whatever words it has.
    const auto rank = [&](const Near& one) {
        const bool misspelt = one.edits * 4 <= name.size();
        return std::tuple(!misspelt, misspelt ? 0 : name.size() - std::min(name.size(), one.letters), one.edits,
                          one.name);
    };
    std::ranges::sort(near, {}, rank);
    std::vector<std::string> names;
    for (std::size_t i = 0; i < near.size() && i < 3; ++i) names.emplace_back(near[i].name);
    return names;
}

}  // namespace weir::core
