//===- Picture.h - Lines in a frame, as SVG ---------------------*- C++ -*-===//
#ifndef TCC_TOOLS_CLI_PICTURE_H
#define TCC_TOOLS_CLI_PICTURE_H

#include <string>
#include <utility>
#include <vector>

namespace tcc::tools {

/// An axis of a picture.
struct Axis {
  std::string name;
  double low, high;
  bool isLogarithmic = false; ///< lines at the powers of ten
};

class Picture {
public:
  using Points = std::vector<std::pair<double, double>>;

  Picture(Axis x, Axis y);

  /// `style` is SVG's attributes. What is not finite is left out; what is above
  /// or below the frame lies on its edge.
  void addLine(const Points &points, const std::string &style);
  /// Filled down to the axis.
  void addArea(const Points &points, const std::string &style);
  void addDot(double x, double y, const std::string &colour);
  /// A line upwards, named `below` pixels from the top.
  void addMark(double x, const std::string &name, const std::string &colour,
               double below);
  std::string finish() const { return text + "</svg>\n"; }

private:
  double getX(double value) const;
  double getY(double value) const;
  void addAxes();
  std::string trace(const Points &points) const;

  Axis x, y;
  std::string text;
};

} // namespace tcc::tools

#endif // TCC_TOOLS_CLI_PICTURE_H
