// SVG by hand: polylines, ticks, cells.
#include "triax/train/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace triax::train {
namespace {

constexpr double kWidth = 760, kHeight = 300;
constexpr double kLeft = 64, kRight = 12, kTop = 10, kBottom = 44;
constexpr std::size_t kColours = 8;
constexpr std::size_t kMaxPoints = 1200;  // of a line; neighbours are averaged

// A range of values and where they lie.
struct Scale {
  double low = 0, high = 1, from = 0, to = 1;
  bool log = false;

  double at(double v) const {
    const double a = log ? std::log(low) : low, b = log ? std::log(high) : high;
    const double x = log ? std::log(v) : v;
    return from + (to - from) * (b > a ? (x - a) / (b - a) : 0.5);
  }
  bool takes(double v) const { return std::isfinite(v) && (!log || v > 0); }
  void widen(double v) {
    if (!takes(v)) return;
    low = std::min(low, v);
    high = std::max(high, v);
  }
  std::vector<double> ticks() const {
    std::vector<double> out;
    if (log) {
      for (int e = static_cast<int>(std::floor(std::log10(low))); std::pow(10, e) <= high; ++e) {
        for (const int m : {1, 2, 5}) {
          const double v = m * std::pow(10, e);
          if (v >= low * 0.999 && v <= high * 1.001) out.push_back(v);
        }
      }
      while (out.size() > 9) {  // every other one
        std::vector<double> fewer;
        for (std::size_t i = 0; i < out.size(); i += 2) fewer.push_back(out[i]);
        out = fewer;
      }
      return out;
    }
    const double raw = (high - low) / 6;
    if (raw <= 0) return {low};
    const double unit = std::pow(10, std::floor(std::log10(raw)));
    const double step = raw / unit < 1.5   ? unit
                        : raw / unit < 3.5 ? 2 * unit
                        : raw / unit < 7.5 ? 5 * unit
                                           : 10 * unit;
    for (double v = std::ceil(low / step) * step; v <= high + step * 1e-6; v += step) {
      out.push_back(std::abs(v) < step * 1e-6 ? 0 : v);
    }
    return out;
  }
};

std::string tick_text(double v) {
  const double a = std::abs(v);
  if (a >= 1e9) return fmt::format("{:g}G", v / 1e9);
  if (a >= 1e6) return fmt::format("{:g}M", v / 1e6);
  if (a >= 1e4) return fmt::format("{:g}k", v / 1e3);
  return fmt::format("{:g}", std::round(v * 1e6) / 1e6);
}

Series thinned(const Series& s) {
  if (s.x.size() <= kMaxPoints) return s;
  Series out{s.name, {}, {}, s.dots};
  const std::size_t group = (s.x.size() + kMaxPoints - 1) / kMaxPoints;
  for (std::size_t i = 0; i < s.x.size(); i += group) {
    double x = 0, y = 0;
    const std::size_t end = std::min(s.x.size(), i + group);
    for (std::size_t j = i; j < end; ++j) x += s.x[j], y += s.y[j];
    out.x.push_back(x / static_cast<double>(end - i));
    out.y.push_back(y / static_cast<double>(end - i));
  }
  return out;
}

void draw_axes(const Axes& axes, const Scale& x, const Scale& y, std::string& out) {
  const auto to = std::back_inserter(out);
  for (const double v : y.ticks()) {
    fmt::format_to(to,
                   "<line class='grid' x1='{:.1f}' x2='{:.1f}' y1='{:.1f}' y2='{:.1f}'/>"
                   "<text x='{:.1f}' y='{:.1f}' text-anchor='end'>{}</text>",
                   x.from, x.to, y.at(v), y.at(v), x.from - 6, y.at(v) + 4, tick_text(v));
  }
  for (const double v : x.ticks()) {
    fmt::format_to(to, "<text x='{:.1f}' y='{:.1f}' text-anchor='middle'>{}</text>", x.at(v),
                   y.from + 16, tick_text(v));
  }
  fmt::format_to(to,
                 "<text x='{:.1f}' y='{:.1f}' text-anchor='middle'>{}</text>"
                 "<text transform='translate(13,{:.1f}) rotate(-90)' "
                 "text-anchor='middle'>{}</text>",
                 (x.from + x.to) / 2, kHeight - 8, html_escaped(axes.x), (y.from + y.to) / 2,
                 html_escaped(axes.y));
}

void draw_series(const Series& s, std::size_t colour, const Scale& x, const Scale& y,
                 std::string& out) {
  const auto to = std::back_inserter(out);
  std::string points;
  for (std::size_t i = 0; i < s.x.size(); ++i) {
    if (!x.takes(s.x[i]) || !y.takes(s.y[i])) continue;
    fmt::format_to(std::back_inserter(points), "{:.1f},{:.1f} ", x.at(s.x[i]), y.at(s.y[i]));
    if (s.dots) {
      fmt::format_to(to, "<circle class='f{}' r='3' cx='{:.1f}' cy='{:.1f}'/>", colour,
                     x.at(s.x[i]), y.at(s.y[i]));
    }
  }
  fmt::format_to(to, "<polyline class='c{}' points='{}'><title>{}</title></polyline>", colour,
                 points, html_escaped(s.name));
}

}  // namespace

std::string html_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '\'')
      out += "&#39;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string line_plot(const Axes& axes, const std::vector<Series>& all) {
  std::vector<Series> series;
  for (const Series& s : all) series.push_back(thinned(s));
  Scale x{1e300, -1e300, kLeft, kWidth - kRight, axes.log_x};
  Scale y{1e300, -1e300, kHeight - kBottom, kTop, axes.log_y};
  for (const Series& s : series) {
    for (std::size_t i = 0; i < s.x.size(); ++i) {
      if (!x.takes(s.x[i]) || !y.takes(s.y[i])) continue;
      x.widen(s.x[i]);
      y.widen(s.y[i]);
    }
  }
  if (x.low > x.high) return "<p>nothing to plot yet</p>";
  if (axes.from_zero && !axes.log_y) y.low = std::min(y.low, 0.0);
  if (!axes.log_y && y.low == y.high) y.high = y.low + 1;
  std::string out = fmt::format("<svg viewBox='0 0 {} {}' role='img'>", kWidth, kHeight);
  draw_axes(axes, x, y, out);
  for (std::size_t i = 0; i < series.size(); ++i) draw_series(series[i], i % kColours, x, y, out);
  out += "</svg>";
  if (series.size() > 1) {
    out += "<p class='legend'>";
    for (std::size_t i = 0; i < series.size(); ++i) {
      out += fmt::format("<span class='t{}'>&#9644;</span> {} &nbsp; ", i % kColours,
                         html_escaped(series[i].name));
    }
    out += "</p>";
  }
  return out;
}

std::string heat_plot(const HeatMap& map) {
  std::size_t columns = 0;
  double top = map.top;
  for (const auto& row : map.values) {
    columns = std::max(columns, row.size());
    for (const double v : row) {
      if (map.top <= 0 && std::isfinite(v)) top = std::max(top, v);
    }
  }
  if (columns == 0) return "<p>nothing to plot yet</p>";
  constexpr double kNames = 130, kRow = 17;
  const double cell = (kWidth - kNames - kRight) / static_cast<double>(columns);
  const double height = kRow * static_cast<double>(map.values.size()) + 30;
  std::string out = fmt::format("<svg viewBox='0 0 {} {:.0f}' role='img'>", kWidth, height);
  const auto to = std::back_inserter(out);
  for (std::size_t r = 0; r < map.values.size(); ++r) {
    const double y = kRow * static_cast<double>(r);
    fmt::format_to(to, "<text x='{:.1f}' y='{:.1f}' text-anchor='end'>{}</text>", kNames - 6,
                   y + 12, html_escaped(map.rows[r]));
    for (std::size_t i = 0; i < map.values[r].size(); ++i) {
      const double v = map.values[r][i];
      if (!std::isfinite(v)) continue;
      const double share = top > 0 ? std::clamp(v / top, 0.0, 1.0) : 0;
      fmt::format_to(to,
                     "<rect class='cell' x='{:.2f}' y='{:.1f}' width='{:.2f}' height='{}' "
                     "fill-opacity='{:.3f}'><title>{}, {}: {:.4g}</title></rect>",
                     kNames + cell * static_cast<double>(i), y, std::max(0.6, cell - 0.6), kRow - 1,
                     share, html_escaped(map.rows[r]), i, v);
    }
  }
  fmt::format_to(to, "<text x='{:.1f}' y='{:.1f}' text-anchor='middle'>{} (darkest: {:.4g})</text>",
                 (kNames + kWidth) / 2, height - 8, html_escaped(map.x), top);
  return out + "</svg>";
}

std::string_view plot_style() {
  return R"(
:root { color-scheme: light dark; --ink: #1c2128; --soft: #667; --paper: #fff; --line: #e2e5ea; --cell: #1f6feb; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ee; --soft: #9aa3ad; --paper: #14181d; --line: #2c333c; --cell: #58a6ff; } }
body { background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif;
  max-width: 860px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .3rem; }
p, .legend { color: var(--soft); margin: .3rem 0; }
svg { width: 100%; height: auto; } svg text { fill: var(--soft); font-size: 12px; }
.grid { stroke: var(--line); } polyline { fill: none; stroke-width: 1.6; }
.cell { fill: var(--cell); }
table { border-collapse: collapse; } td, th { padding: .15rem .8rem .15rem 0; text-align: left; }
pre { overflow: auto; background: var(--line); padding: 1rem; border-radius: 6px; font-size: 12px; }
.c0 { stroke: #1f6feb } .t0 { color: #1f6feb } .f0 { fill: #1f6feb }
.c1 { stroke: #e36209 } .t1 { color: #e36209 } .f1 { fill: #e36209 }
.c2 { stroke: #2da44e } .t2 { color: #2da44e } .f2 { fill: #2da44e }
.c3 { stroke: #cf222e } .t3 { color: #cf222e } .f3 { fill: #cf222e }
.c4 { stroke: #8250df } .t4 { color: #8250df } .f4 { fill: #8250df }
.c5 { stroke: #9a6700 } .t5 { color: #9a6700 } .f5 { fill: #9a6700 }
.c6 { stroke: #1b9e9e } .t6 { color: #1b9e9e } .f6 { fill: #1b9e9e }
.c7 { stroke: #bf3989 } .t7 { color: #bf3989 } .f7 { fill: #bf3989 }
)";
}

}  // namespace triax::train
