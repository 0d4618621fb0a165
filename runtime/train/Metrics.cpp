#include "runtime/train/Metrics.h"

#include "runtime/package/DType.h"
#include "runtime/package/Names.h"
#include "runtime/package/SizeExpr.h"

#include <algorithm>
#include <array>
#include <cmath>

using namespace tcc;
using namespace tcc::runtime;
using format::EntryKind;
using format::MetricRule;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

size_t EvaluationMetric::size() const {
  size_t count = 1;
  for (int64_t extent : shape)
    count *= static_cast<size_t>(extent);
  return count;
}

static double divide(double a, double b) { return b == 0 ? 0 : a / b; }

/// The precision, recall or F1 of one class.
static double rate(MetricRule rule, double right, double taken, double of) {
  if (rule == MetricRule::precision)
    return divide(right, taken);
  if (rule == MetricRule::recall)
    return divide(right, of);
  return divide(2 * right, taken + of);
}

std::vector<double>
EvaluationMetric::compute(std::span<const double> sums) const {
  auto element = [&](size_t sum, size_t at) { return sums[places[sum] + at]; };
  auto mean = [&] { return element(0, 0) / element(1, 0); };
  switch (rule) {
  case MetricRule::mean:
    return {mean()};
  case MetricRule::root_mean:
    return {std::sqrt(mean())};
  case MetricRule::exp_mean:
    return {std::exp(mean())};
  case MetricRule::precision:
  case MetricRule::recall:
  case MetricRule::f1: {
    double total = 0, classes = 0;
    for (size_t i = 0; i < size(); ++i) {
      double taken = element(1, i), of = element(2, i);
      if (taken == 0 && of == 0)
        continue;
      total += rate(rule, element(0, i), taken, of);
      ++classes;
    }
    return {total / classes};
  }
  case MetricRule::table:
    return {sums.begin() + places[0], sums.begin() + places[0] + size()};
  }
  return {}; // the package was verified
}

//===----------------------------------------------------------------------===//
// What a package has
//===----------------------------------------------------------------------===//

static const format::Entry *findEval(const format::Program &program) {
  for (const format::Entry *entry : *program.entries())
    if (entry->kind() == EntryKind::eval)
      return entry;
  return nullptr;
}

/// The static shape of an output; it is known if a metric has the output.
static std::vector<int64_t> shapeOf(const format::TensorSpec &output) {
  return staticShape(output).value_or(std::vector<int64_t>{0});
}

static size_t countElements(const format::TensorSpec &output) {
  DType dtype = output.dtype();
  return bytesOf(dtype, shapeOf(output)).value_or(0) / traitsOf(dtype).bytes;
}

/// The position of an output, if there is one of that name.
static std::optional<uint32_t> findOutput(const format::Entry &eval,
                                          format::Metric name) {
  for (uint32_t i = 0; i < eval.outputs()->size(); ++i)
    if (eval.outputs()->Get(i)->name()->string_view() == nameOf(name))
      return i;
  return std::nullopt;
}

static EvaluationMetric makeMetric(const format::Entry &eval, std::string name,
                                   MetricRule rule, bool rises,
                                   std::span<const uint32_t> outputs) {
  EvaluationMetric metric = {std::move(name), rule, rises, {}, {}};
  for (uint32_t output : outputs) {
    size_t place = 0;
    for (uint32_t before = 0; before < output; ++before)
      place += countElements(*eval.outputs()->Get(before));
    metric.places.push_back(place);
  }
  metric.shape = shapeOf(*eval.outputs()->Get(outputs[0]));
  return metric;
}

std::vector<EvaluationMetric>
runtime::listMetrics(const format::Program &program) {
  const format::Entry *eval = findEval(program);
  std::vector<EvaluationMetric> metrics;
  if (!eval)
    return metrics;
  if (const auto *listed = program.metrics(); listed && listed->size() > 0) {
    for (const format::EvalMetric *metric : *listed)
      metrics.push_back(makeMetric(
          *eval, metric->name()->str(), metric->rule(), metric->rises(),
          {metric->sums()->data(), metric->sums()->size()}));
    return metrics;
  }
  auto loss = findOutput(*eval, format::Metric::loss);
  auto count = findOutput(*eval, format::Metric::count);
  auto correct = findOutput(*eval, format::Metric::correct);
  if (loss && count)
    metrics.push_back(makeMetric(*eval, "loss", MetricRule::mean,
                                 /*rises=*/false, std::array{*loss, *count}));
  if (correct && count)
    metrics.push_back(makeMetric(*eval, "accuracy", MetricRule::mean,
                                 /*rises=*/true, std::array{*correct, *count}));
  return metrics;
}

size_t runtime::countSums(const format::Program &program) {
  size_t count = 0;
  if (const format::Entry *eval = findEval(program))
    for (const format::TensorSpec *output : *eval->outputs())
      count += countElements(*output);
  return count;
}

const EvaluationMetric *
runtime::findMetric(std::span<const EvaluationMetric> metrics,
                    std::string_view name) {
  auto found = std::ranges::find(metrics, name, &EvaluationMetric::name);
  return found == metrics.end() ? nullptr : &*found;
}
