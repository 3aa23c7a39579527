#include "bench/svg_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "bench/html_text.hpp"
#include "bench/svg_drawing.hpp"
#include "bench/table.hpp"

namespace weir::bench {
namespace {

constexpr double width = 400;
constexpr double left = 56;  // for the labels of ticks and rows
constexpr double right = 386;
constexpr double letter = 6.6;  // the mean width of one

double across(const Axis& axis, double value) {
    return left + axis.place(value) * (right - left);
}

/// Ticks below `bottom` with lines up to `top`; a label that would touch the one before it is left out.
void draw_x_axis(SvgDrawing& drawing, const Axis& axis, const std::string& label, double top, double bottom) {
    double free_from = 0;
    std::vector<Tick> ticks = axis.ticks();
    std::ranges::sort(ticks, {}, &Tick::value);
    for (const Tick& tick : ticks) {
        const double x = across(axis, tick.value);
        drawing.line("grid", x, top, x, bottom);
        const double half = static_cast<double>(tick.label.size()) * letter / 2;
        if (x - half < free_from) continue;
        drawing.text(x, bottom + 15, "middle", tick.label);
        free_from = x + half + letter;
    }
    drawing.line("axis", left, bottom, right, bottom);
    drawing.text((left + right) / 2, bottom + 32, "middle", label);
}

struct LegendEntry {
    std::string name;
    std::string picture;  ///< SVG
};

LegendEntry legend_mark(std::size_t series, const std::string& name) {
    SvgDrawing drawing;
    drawing.mark(series, 6, 6);
    return {name, drawing.svg(12, 12, "")};
}

std::string figure_html(const std::string& title, const std::string& svg, const std::vector<LegendEntry>& legend,
                        std::string_view caption) {
    std::string html = "<figure><figcaption>" + escaped(title) + "</figcaption>\n" + svg;
    if (!legend.empty()) {
        html += "<ul class=\"legend\">";
        for (const auto& [name, picture] : legend) html += "<li>" + picture + escaped(name) + "</li>";
        html += "</ul>\n";
    }
    if (!caption.empty()) html += "<p class=\"caption\">" + escaped(caption) + "</p>\n";
    return html + "</figure>\n";
}

/// Draws an XyPlot. Above is the area of the y axis, below one band for each row, with a lane for each series.
class XyPicture {
public:
    explicit XyPicture(const XyPlot& plot)
        : plot_(plot), band_(8 + lane * static_cast<double>(std::max<std::size_t>(plot.series.size(), 1))) {}

    std::string svg() {
        drawing_.text(2, 14, "start", plot_.y_label);
        draw_y_axis();
        for (std::size_t row = 0; row < plot_.rows.size(); ++row) draw_band(row);
        draw_x_axis(drawing_, plot_.x, plot_.x_label, top, end());
        for (std::size_t i = 0; i < plot_.series.size(); ++i) draw_series(i);
        return drawing_.svg(width, end() + 40, plot_.title);
    }

private:
    static constexpr double top = 28;
    static constexpr double bottom = 208;
    static constexpr double lane = 9;
    static constexpr double gap = 6;  // above each band

    [[nodiscard]] double band_top(std::size_t row) const {
        return bottom + gap + static_cast<double>(row) * (band_ + gap);
    }
    [[nodiscard]] double end() const { return plot_.rows.empty() ? bottom : band_top(plot_.rows.size() - 1) + band_; }
    [[nodiscard]] double up(double value) const { return bottom - plot_.y.place(value) * (bottom - top); }

    void draw_y_axis() {
        for (const Tick& tick : plot_.y.ticks()) {
            drawing_.line("grid", left, up(tick.value), right, up(tick.value));
            drawing_.text(left - 6, up(tick.value) + 4, "end", tick.label);
        }
        drawing_.line("axis", left, top, left, bottom);
    }
    void draw_band(std::size_t row) {
        drawing_.rectangle("band", left, band_top(row), right - left, band_);
        drawing_.text(left - 6, band_top(row) + band_ / 2 + 4, "end", plot_.rows[row]);
    }
    [[nodiscard]] double beside(std::size_t series) const {
        if (!plot_.series[series].apart) return 0;
        const auto last = static_cast<double>(plot_.series.size()) - 1;
        return (static_cast<double>(series) - last / 2) * std::min(6.0, 24 / std::max(1.0, last));
    }
    [[nodiscard]] double height_of(std::size_t series, const PlotPoint& point) const {
        return point.y ? up(*point.y) : band_top(point.row) + 4 + lane * (static_cast<double>(series) + 0.5);
    }
    [[nodiscard]] bool drawable(const PlotPoint& point) const {
        return std::isfinite(point.x) && (point.y ? std::isfinite(*point.y) : point.row < plot_.rows.size());
    }
    void draw_series(std::size_t i) {
        const PlotSeries& series = plot_.series[i];
        if (series.line)
            for (const PlotPoint& point : series.points)
                if (drawable(point)) drawing_.path_to(across(plot_.x, point.x) + beside(i), height_of(i, point));
        drawing_.end_path(i);
        for (const PlotPoint& point : series.points)
            if (drawable(point)) draw_point(i, point, across(plot_.x, point.x) + beside(i));
    }
    void draw_point(std::size_t i, const PlotPoint& point, double x) {
        const double y = height_of(i, point);
        if (point.low && point.high && std::isfinite(*point.low) && std::isfinite(*point.high)) {
            const std::string style = "bar " + series_class(i);
            drawing_.line(style, x, up(*point.low), x, up(*point.high));
            for (const double end_of_bar : {*point.low, *point.high})
                drawing_.line(style, x - 3, up(end_of_bar), x + 3, up(end_of_bar));
        }
        if (point.hollow_cross)
            drawing_.hollow_cross(i, x, y, point.title);
        else
            drawing_.mark(i, x, y, point.title);
    }

    const XyPlot& plot_;
    double band_;
    SvgDrawing drawing_;
};

std::vector<LegendEntry> legend_of(const XyPlot& plot) {
    std::vector<LegendEntry> legend;
    bool crosses = false;
    for (std::size_t i = 0; i < plot.series.size(); ++i) {
        legend.push_back(legend_mark(i, plot.series[i].name));
        crosses |= std::ranges::any_of(plot.series[i].points, &PlotPoint::hollow_cross);
    }
    if (!crosses) return legend;
    SvgDrawing drawing;
    drawing.hollow_cross(5, 6, 6);
    legend.push_back({"invalid trial, not counted", drawing.svg(12, 12, "")});
    return legend;
}

/// Draws a RowPlot.
class RowPicture {
public:
    explicit RowPicture(const RowPlot& plot) : plot_(plot) {
        for (const PlotRows& group : plot.groups) {
            end_ += heading_height(group);
            end_ += static_cast<double>(group.rows.size()) * row_height();
        }
    }

    std::string svg() {
        draw_x_axis(drawing_, plot_.x, plot_.x_label, 4, end_ + 4);
        double y = 4;
        for (const PlotRows& group : plot_.groups) {
            draw_heading(group, y);
            y += heading_height(group);
            for (const PlotRow& row : group.rows) {
                drawing_.text(left - 6, y + row_height() / 2 + 4, "end", row.label);
                if (plot_.bars)
                    draw_bars(row, y);
                else
                    draw_marks(row, y + row_height() / 2);
                y += row_height();
            }
        }
        return drawing_.svg(width, end_ + 44, plot_.title);
    }

private:
    static constexpr double line = 14;          // of a heading
    static constexpr std::size_t letters = 58;  // in one

    /// The lines of a heading that together fit the width.
    [[nodiscard]] static std::vector<std::string> lines_of(const PlotRows& group) {
        std::vector<std::string> lines;
        std::istringstream text(wrapped(group.heading, letters, 0));
        for (std::string next; std::getline(text, next);) lines.push_back(next);
        return lines;
    }
    [[nodiscard]] static double heading_height(const PlotRows& group) {
        return 8 + line * static_cast<double>(lines_of(group).size());
    }
    void draw_heading(const PlotRows& group, double y) {
        for (const std::string& text : lines_of(group)) drawing_.text(2, y += line, "start", text);
    }
    static constexpr double bar = 12;

    [[nodiscard]] double row_height() const {
        return plot_.bars ? bar * static_cast<double>(plot_.names.size()) + 6 : 18;
    }
    void draw_bars(const PlotRow& row, double y) {
        for (std::size_t i = 0; i < row.values.size(); ++i) {
            const double up = y + 3 + bar * static_cast<double>(i);
            if (!row.values[i] || !std::isfinite(*row.values[i])) continue;
            const double end = across(plot_.x, *row.values[i]);
            drawing_.rectangle(fmt::format("block b{} {}", i, series_class(i)), left, up + 1, end - left, bar - 2);
            const double text = static_cast<double>(row.texts[i].size()) * letter + 4;
            const bool inside = end + text > width;  // next to the longest bars there is no room
            drawing_.text(inside ? end - 4 : end + 4, up + 10, inside ? "end" : "start", row.texts[i]);
        }
    }
    void draw_marks(const PlotRow& row, double y) {
        std::vector<double> places;
        for (const auto& value : row.values)
            if (value && std::isfinite(*value)) places.push_back(across(plot_.x, *value));
        if (!places.empty()) drawing_.line("axis", std::ranges::min(places), y, std::ranges::max(places), y);
        for (std::size_t i = 0; i < row.values.size(); ++i)
            if (row.values[i] && std::isfinite(*row.values[i]))
                drawing_.mark(i, across(plot_.x, *row.values[i]), y, plot_.names[i] + ": " + row.texts[i]);
    }

    const RowPlot& plot_;
    double end_ = 0;
    SvgDrawing drawing_;
};

std::vector<LegendEntry> legend_of(const RowPlot& plot) {
    std::vector<LegendEntry> legend;
    for (std::size_t i = 0; i < plot.names.size(); ++i) {
        legend.push_back(legend_mark(i, plot.names[i]));
        if (!plot.bars) continue;
        SvgDrawing drawing;
        drawing.rectangle(fmt::format("block b{} {}", i, series_class(i)), 1, 1, 10, 10);
        legend.back().picture = drawing.svg(12, 12, "");
    }
    return legend;
}

}  // namespace

std::string_view plot_style() {
    return R"(:root{--grid:#d9dde2;--axis:#5b6570;--band:#eef1f4;
--c0:#0069a8;--c1:#c24a00;--c2:#00785a;--c3:#a03c8c;--c4:#7a5c00;--c5:#4a4f55}
@media screen and (prefers-color-scheme:dark){:root{--grid:#343b44;--axis:#98a3af;--band:#20262d;
--c0:#5cb8f0;--c1:#f58a42;--c2:#35cfa0;--c3:#e590cb;--c4:#e8cb50;--c5:#c9ced4}}
.c0{--c:var(--c0)}.c1{--c:var(--c1)}.c2{--c:var(--c2)}.c3{--c:var(--c3)}.c4{--c:var(--c4)}.c5{--c:var(--c5)}
svg{display:block;width:100%;height:auto}
svg text{font:12px system-ui,sans-serif;fill:var(--ink);paint-order:stroke;stroke:var(--paper);stroke-width:3px}
.grid{stroke:var(--grid)}.axis{stroke:var(--axis)}.band{fill:var(--band)}
.mark{fill:var(--c);fill-opacity:.75;stroke:var(--c)}
.hollow{fill:var(--paper);stroke:var(--c)}
.curve{fill:none;stroke:var(--c);stroke-width:1.5}
.bar{stroke:var(--c);stroke-width:1.5}
.block{fill:var(--c);stroke:var(--c)}.b0{fill-opacity:.55}.b1{fill-opacity:.12}
figure{margin:0;break-inside:avoid;max-width:34rem}
figcaption{font-size:.95rem;line-height:1.35;font-weight:600;margin:0 0 .3rem}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.1rem .9rem;padding:0;margin:.2rem 0;font-size:.85rem}
.legend li{display:flex;align-items:center;gap:.35rem}
.legend svg{width:12px;flex:none}
.caption{font-size:.85rem;color:var(--faint);margin:.2rem 0}
)";
}

std::string figure(const XyPlot& plot, std::string_view caption) {
    return figure_html(plot.title, XyPicture(plot).svg(), legend_of(plot), caption);
}

std::string figure(const RowPlot& plot, std::string_view caption) {
    return figure_html(plot.title, RowPicture(plot).svg(), legend_of(plot), caption);
}

}  // namespace weir::bench
