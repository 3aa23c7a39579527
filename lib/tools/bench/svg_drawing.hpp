// An SVG picture while it is drawn. Lengths in units of the picture, from its upper left corner.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weir::bench {

class SvgDrawing {
public:
    void line(std::string_view style, double x1, double y1, double x2, double y2);
    /// `style`: classes of plot_style().
    void rectangle(std::string_view style, double x, double y, double width, double height);
    /// The baseline begins at x, ends there ("end") or has it in its middle ("middle").
    void text(double x, double y, std::string_view anchor, std::string_view text);
    /// The mark of a series.
    void mark(std::size_t series, double x, double y, std::string_view title = {});
    void hollow_cross(std::size_t series, double x, double y, std::string_view title = {});
    /// Lines from point to point.
    void path_to(double x, double y);
    void end_path(std::size_t series);

    /// Without a title it is decoration, which is not read aloud.
    [[nodiscard]] std::string svg(double width, double height, std::string_view title) const;

private:
    void shape(std::size_t series, std::string_view style, std::string_view path, std::string_view title);

    std::string body_;
    std::string path_;
};

/// The class that has the colour of a series.
[[nodiscard]] std::string series_class(std::size_t series);

}  // namespace weir::bench
