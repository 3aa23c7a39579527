// Plots as SVG inside a page that has plot_style(): points over two axes, and rows of bars or marks. A plot is 400
// units wide, with letters of 12, so that it can still be read on a telephone.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/plot_axis.hpp"

namespace weir::bench {

/// Colours for light and dark, of lines, text and marks. Six colours that colour-blind readers can tell apart and five
/// shapes go round together, so that 30 series differ.
[[nodiscard]] std::string_view plot_style();

struct PlotPoint {
    double x = 0;
    std::optional<double> y;    ///< none: it stands in a row below the axis
    std::size_t row = 0;        ///< which
    std::optional<double> low;  ///< of a bar through the point
    std::optional<double> high;
    bool hollow_cross = false;  ///< drawn so, and not as a value
    std::string title;          ///< shown when a pointer rests on it
};

struct PlotSeries {
    std::string name;
    std::vector<PlotPoint> points;
    bool line = false;
    bool apart = false;  ///< a little beside the others with the same x
};

struct XyPlot {
    std::string title;
    std::string x_label;  ///< with its unit
    std::string y_label;
    Axis x = Axis::from_zero({});
    Axis y = Axis::from_zero({});
    std::vector<std::string> rows;  ///< names of what is below the axis; the logarithm of nothing has no place on it
    std::vector<PlotSeries> series;
};

/// A line of marks, or bars one above the other: as many as RowPlot has names.
struct PlotRow {
    std::string label;
    std::vector<std::optional<double>> values;
    std::vector<std::string> texts;  ///< of the values
};

struct PlotRows {
    std::string heading;
    std::vector<PlotRow> rows;
};

struct RowPlot {
    std::string title;
    std::string x_label;  ///< with its unit
    Axis x = Axis::from_zero({});
    std::vector<std::string> names;  ///< of the values in each row
    bool bars = false;               ///< marks otherwise
    std::vector<PlotRows> groups;
};

/// A figure: its title, the plot, a legend, and `caption` if there is one. What is not finite is not drawn.
[[nodiscard]] std::string figure(const XyPlot& plot, std::string_view caption = {});
[[nodiscard]] std::string figure(const RowPlot& plot, std::string_view caption = {});

}  // namespace weir::bench
