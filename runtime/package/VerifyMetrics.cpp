#include "runtime/package/VerifyMetrics.h"

#include "runtime/package/DType.h"
#include "runtime/package/SizeExpr.h"

#include <string_view>
#include <unordered_set>

using namespace tcc;
using namespace tcc::runtime;
using format::EntryKind;
using format::MetricRule;

static size_t countSums(MetricRule rule) {
  switch (rule) {
  case MetricRule::mean:
  case MetricRule::root_mean:
  case MetricRule::exp_mean:
    return 2;
  case MetricRule::precision:
  case MetricRule::recall:
  case MetricRule::f1:
    return 3;
  case MetricRule::table:
    return 1;
  }
  return 0;
}

/// Whether means are of scalars.
static bool areScalars(MetricRule rule) { return countSums(rule) == 2; }

/// Whether what readers count and divide by is there, and fits.
static bool isCountable(std::span<const int64_t> shape) {
  std::optional<uint64_t> bytes = bytesOf(DType::f64, shape);
  return bytes && *bytes > 0;
}

static bool isWhole(const format::EvalMetric &metric,
                    const format::Entry &eval) {
  const auto &sums = *metric.sums();
  if (metric.name()->size() == 0 || metric.rule() > MetricRule::MAX ||
      sums.size() != countSums(metric.rule()))
    return false;
  std::optional<std::vector<int64_t>> first;
  for (uint32_t output : sums) {
    if (output >= eval.outputs()->size())
      return false;
    auto shape = staticShape(*eval.outputs()->Get(output));
    if (!shape || !isCountable(*shape) ||
        (areScalars(metric.rule()) && !shape->empty()) ||
        (first && shape != first))
      return false;
    first = std::move(shape);
  }
  return true;
}

static Status verifyPlan(const format::Evaluation &plan,
                         const format::Program &program) {
  for (size_t i = 0; program.metrics() && i < program.metrics()->size(); ++i) {
    const format::EvalMetric &metric = *program.metrics()->Get(i);
    if (metric.name()->string_view() == plan.best()->string_view() &&
        metric.rule() != MetricRule::table)
      return Status();
  }
  return makeError(Code::BadData,
                   "the best evaluation is that of a metric which is no number "
                   "of 'eval'");
}

Status runtime::verifyMetrics(const format::Program &program) {
  const format::Entry *eval = nullptr;
  for (const format::Entry *entry : *program.entries())
    if (entry->kind() == EntryKind::eval)
      eval = entry;
  std::unordered_set<std::string_view> names;
  for (size_t i = 0; program.metrics() && i < program.metrics()->size(); ++i) {
    const format::EvalMetric &metric = *program.metrics()->Get(i);
    if (!eval || !isWhole(metric, *eval) ||
        !names.insert(metric.name()->string_view()).second)
      return makeError(Code::BadData, "metric ", i, " of 'eval' is bad");
  }
  return program.evaluation() ? verifyPlan(*program.evaluation(), program)
                              : Status();
}
