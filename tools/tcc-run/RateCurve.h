//===- RateCurve.h - Losses along growing learning rates --------*- C++ -*-===//
//
// The range test of Smith (Cyclical Learning Rates, 2017): updates with a rate
// that grows by a factor each; where the loss falls fastest is a good rate, and
// where it is lowest one that is too large already.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_TOOLS_TCCRUN_RATECURVE_H
#define TCC_TOOLS_TCCRUN_RATECURVE_H

#include <optional>
#include <string>
#include <vector>

namespace tcc::tools {

struct RatePoint {
  double rate, loss;
  double smooth; ///< mean of the losses so far, later ones weigh more
};

class RateCurve {
public:
  /// Rates from `first` to `last` in `count` updates, at least two.
  RateCurve(double first, double last, int64_t count)
      : first(first), last(last), count(count) {}

  int64_t size() const { return count; }
  double getRate(int64_t update) const;
  void add(double loss);
  /// True if the losses are so far above the lowest that more say nothing.
  bool isOver() const;

  const std::vector<RatePoint> &getPoints() const { return points; }
  /// Where the loss falls fastest; nothing if it falls nowhere.
  std::optional<double> findSteepest() const;
  /// A tenth of where it is lowest.
  std::optional<double> findTenth() const;
  /// A picture of the losses, SVG.
  std::string draw() const;

private:
  size_t findLowest() const;

  double first, last;
  int64_t count;
  double sum = 0, weight = 0; // smooth = sum / weight
  std::vector<RatePoint> points;
};

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_RATECURVE_H
