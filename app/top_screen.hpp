// What `weir top` shows: lines of text made of the document, for a screen of some size. Knows no terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace weir::app {

/// How a piece of text looks. What it says never depends on that.
enum class TopInk : std::uint8_t { plain, strong, dim, good, bad, alarm, unknown };

struct TopSpan {
    std::string text;
    TopInk ink = TopInk::plain;
};
using TopLine = std::vector<TopSpan>;

enum class TopOrder : std::uint8_t { trouble, rate, number };
inline constexpr std::size_t top_orders = 3;

struct TopView {
    std::size_t width = 80;
    std::size_t height = 0;  ///< 0: as many lines as there are, with at most 16 sources
    std::size_t first_source = 0;
    TopOrder order = TopOrder::trouble;
    bool help = false;
    std::string trouble;     ///< why nothing is heard of it now; empty: it is heard
    double heard_s_ago = 0;  ///< if there is trouble
};

struct TopScreen {
    std::vector<TopLine> lines;  ///< none wider than the view, and not more than fit
    std::size_t source_rows = 0;
    std::size_t sources = 0;
};

[[nodiscard]] TopScreen top_screen(const nlohmann::json& document, const TopView& view);

/// Cuts what does not fit.
void fit_to(TopLine& line, std::size_t width);

/// Without inks, a line each.
[[nodiscard]] std::string top_text(const TopScreen& screen);

}  // namespace weir::app
