#include "bench/svg_drawing.hpp"

#include <fmt/format.h>

#include "bench/html_text.hpp"

namespace weir::bench {
namespace {

constexpr std::size_t colours = 6;
constexpr std::size_t shapes = 5;

/// Of about the same area, so that no series looks more important.
std::string shape_path(std::size_t shape, double x, double y) {
    switch (shape % shapes) {
        case 0:
            return fmt::format("M{:.1f} {:.1f}a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z", x - 3.5, y);
        case 1:
            return fmt::format("M{:.1f} {:.1f}h6.4v6.4h-6.4z", x - 3.2, y - 3.2);
        case 2:
            return fmt::format("M{:.1f} {:.1f}l4.4 7.4h-8.8z", x, y - 4.6);
        case 3:
            return fmt::format("M{:.1f} {:.1f}l4.4 4.4l-4.4 4.4l-4.4 -4.4z", x, y - 4.4);
        default:
            return fmt::format("M{:.1f} {:.1f}l4.4 -7.4h-8.8z", x, y + 4.6);
    }
}

}  // namespace

std::string series_class(std::size_t series) {
    return fmt::format("c{}", series % colours);
}

void SvgDrawing::line(std::string_view style, double x1, double y1, double x2, double y2) {
    body_ += fmt::format("<path class=\"{}\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\"/>\n", style, x1, y1, x2, y2);
}

void SvgDrawing::rectangle(std::string_view style, double x, double y, double width, double height) {
    body_ += fmt::format("<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>\n", style,
                         x, y, width, height);
}

void SvgDrawing::text(double x, double y, std::string_view anchor, std::string_view text) {
    body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, escaped(text));
}

void SvgDrawing::shape(std::size_t series, std::string_view style, std::string_view path, std::string_view title) {
    body_ += fmt::format("<path class=\"{} {}\" d=\"{}\"", style, series_class(series), path);
    body_ += title.empty() ? "/>\n" : fmt::format("><title>{}</title></path>\n", escaped(title));
}

void SvgDrawing::mark(std::size_t series, double x, double y, std::string_view title) {
    shape(series, "mark", shape_path(series, x, y), title);
}

void SvgDrawing::hollow_cross(std::size_t series, double x, double y, std::string_view title) {
    // The outline of two bars across each other, so thin that it is no square where several lie close together.
    shape(series, "hollow",
          fmt::format("M{:.1f} {:.1f}l2.8 -2.8l1.4 1.4l-2.8 2.8l2.8 2.8l-1.4 1.4l-2.8 -2.8l-2.8 2.8l-1.4 -1.4l2.8 "
                      "-2.8l-2.8 -2.8l1.4 -1.4z",
                      x, y - 1.4),
          title);
}

void SvgDrawing::path_to(double x, double y) {
    path_ += fmt::format("{}{:.1f} {:.1f}", path_.empty() ? "M" : "L", x, y);
}

void SvgDrawing::end_path(std::size_t series) {
    if (!path_.empty()) shape(series, "curve", path_, {});
    path_.clear();
}

std::string SvgDrawing::svg(double width, double height, std::string_view title) const {
    const std::string role =
        title.empty() ? "aria-hidden=\"true\"" : "role=\"img\" aria-label=\"" + escaped(title) + '"';
    return fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" {}>\n{}</svg>\n", width,
                       height, role, body_);
}

}  // namespace weir::bench
