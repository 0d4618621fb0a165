//===- Metrics.h - What an evaluation says ----------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_TRAIN_METRICS_H
#define TCC_RUNTIME_TRAIN_METRICS_H

#include "runtime/package/Program_generated.h"

#include <span>
#include <string>
#include <vector>

namespace tcc::runtime {

/// A metric that a package's `eval` has.
struct EvaluationMetric {
  std::string name;
  format::MetricRule rule;
  bool rises; ///< the larger the better
  /// Where its sums begin among those of an evaluation, and how many numbers
  /// each of them has.
  std::vector<size_t> places;
  std::vector<int64_t> shape;

  bool isNumber() const { return rule != format::MetricRule::table; }
  size_t size() const;
  /// One number, or a table in row-major order; NaN where nothing was counted.
  std::vector<double> compute(std::span<const double> sums) const;
  bool isBetter(double value, double than) const {
    return rises ? value > than : value < than;
  }
};

/// The metrics of a verified package, the loss first; none without `eval`. A
/// package that lists none has a loss, and an accuracy if it counts what is
/// correct.
std::vector<EvaluationMetric> listMetrics(const format::Program &program);

/// How many numbers an evaluation sums: elements of the outputs of `eval`, of
/// which the package gives static shapes.
size_t countSums(const format::Program &program);

/// The metric of that name; null if there is none.
const EvaluationMetric *findMetric(std::span<const EvaluationMetric> metrics,
                                   std::string_view name);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_TRAIN_METRICS_H
