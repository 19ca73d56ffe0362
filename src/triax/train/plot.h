// Plots as inline SVG, for reports that need no network and follow the reader's colours. Internal
// to train/ and distill/.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace triax::train {

struct Series {
  std::string name;
  std::vector<double> x, y;
  bool dots = false;  // points as well as the line
};

struct Axes {
  std::string x, y;  // titles
  bool log_x = false, log_y = false;
  bool from_zero = false;  // y begins at 0
};

// Lines over one pair of axes, with a legend below when there are several. Values that are not
// finite (or, on a logarithmic axis, not positive) are left out.
std::string line_plot(const Axes& axes, const std::vector<Series>& series);

// A cell for each value, darker for more; a row of NaN-padded values may be shorter. `top` is the
// value of the darkest cell (0: the largest).
struct HeatMap {
  std::string x, y;
  std::vector<std::string> rows;
  std::vector<std::vector<double>> values;
  double top = 0;
};
std::string heat_plot(const HeatMap& map);

std::string html_escaped(std::string_view text);
// The style that the plots' classes refer to.
std::string_view plot_style();

}  // namespace triax::train
