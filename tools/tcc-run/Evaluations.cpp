#include "tools/tcc-run/Evaluations.h"

#include "runtime/package/Digest.h"

#include <charconv>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <limits>
#include <sstream>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;
using nlohmann::ordered_json;

//===----------------------------------------------------------------------===//
// One evaluation
//===----------------------------------------------------------------------===//

static Status evaluateOne(TrainingSession &session, Batches &batches,
                          int64_t number, Evaluation &sum) {
  std::vector<int64_t> next(batches.loader().depth());
  for (size_t i = 0; i < next.size(); ++i)
    next[i] = number + int64_t(i + 1) * session.rankCount();
  if (Status status = batches.read(number, next); !status.ok())
    return status;
  Status status = session.evaluate(batches.views(), sum);
  return status.ok() ? Status()
                     : batches.explain(std::move(status), session, number);
}

Result<std::optional<Evaluation>> tools::evaluateAll(TrainingSession &session,
                                                     Batches &batches,
                                                     const Between &between) {
  const BatchLoader &loader = batches.loader();
  int64_t samples = loader.order().sampleCount();
  if (Status status =
          session.compareRanks(digestOf(std::as_bytes(std::span(&samples, 1))),
                               "another number of samples");
      !status.ok())
    return status;
  Evaluation sum;
  for (int64_t first = 0; first < loader.order().batchesPerEpoch();
       first += session.rankCount()) {
    int64_t i = first + session.rank();
    if (i < loader.order().batchesPerEpoch())
      if (Status status = evaluateOne(session, batches, i, sum); !status.ok())
        return status;
    Result<bool> goesOn = between();
    if (!goesOn.ok())
      return goesOn.takeStatus();
    if (!*goesOn)
      return std::optional<Evaluation>();
  }
  Status status = session.addUp(sum);
  if (!status.ok())
    return status;
  return std::optional(std::move(sum));
}

void tools::noteLeftOut(const BatchLoader &loader) {
  const BatchOrder &order = loader.order();
  int64_t left = order.sampleCount() - order.samplesPerEpoch();
  if (left > 0)
    std::cerr << concat("tcc-run: note: ", left,
                        " samples do not fill a batch of ", order.batchSize(),
                        " and are left out of an epoch\n");
  if (order.paddingShare() > 0)
    std::cerr << concat(
        "tcc-run: note: ", std::lround(1000 * order.paddingShare()) / 10.0,
        " % of what samples are computed at is padding\n");
}

/// A list for each axis.
static ordered_json nest(std::span<const double> elements,
                         std::span<const int64_t> shape) {
  if (shape.empty())
    return elements[0];
  ordered_json rows = ordered_json::array();
  size_t size = elements.size() / shape[0];
  for (int64_t i = 0; i < shape[0]; ++i)
    rows.push_back(nest(elements.subspan(i * size, size), shape.subspan(1)));
  return rows;
}

ordered_json tools::describeMetrics(std::span<const EvaluationMetric> metrics,
                                    std::span<const double> sums) {
  ordered_json document = ordered_json::object();
  for (const EvaluationMetric &metric : metrics) {
    std::vector<double> value = metric.compute(sums);
    document[metric.name] =
        metric.isNumber() ? ordered_json(value[0]) : nest(value, metric.shape);
  }
  return document;
}

/// A share of all is in percent.
static bool isShare(const EvaluationMetric &metric) {
  return metric.rises && metric.rule == format::MetricRule::mean;
}

std::string tools::formatMetrics(std::span<const EvaluationMetric> metrics,
                                 std::span<const double> sums) {
  std::ostringstream text;
  for (const EvaluationMetric &metric : metrics) {
    if (!metric.isNumber())
      continue;
    double value = metric.compute(sums)[0];
    text << (text.tellp() > 0 ? ", " : "") << metric.name << ' ';
    if (isShare(metric))
      text << std::setprecision(4) << 100 * value << " %";
    else
      text << std::setprecision(6) << value;
  }
  return text.str();
}

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

EvaluationPlan::EvaluationPlan(const format::Program &program) {
  std::vector<EvaluationMetric> metrics = listMetrics(program);
  if (!metrics.empty())
    best = metrics.front().name;
  if (const format::Evaluation *plan = program.evaluation()) {
    if (plan->data())
      data = plan->data()->str();
    every = static_cast<int64_t>(plan->every());
    best = plan->best()->str();
    patience = static_cast<int64_t>(plan->patience());
    ema = plan->ema();
  }
}

static bool readCount(std::string_view text, int64_t &to) {
  auto [end, failure] =
      std::from_chars(text.data(), text.data() + text.size(), to);
  return failure == std::errc() && end == text.data() + text.size() && to >= 0;
}

Status EvaluationPlan::set(std::string_view key, std::string_view value) {
  auto refuse = [&](const char *expected) {
    return makeError(Code::Usage, "--set: eval.", key, " is '", value,
                     "', expected ", expected);
  };
  if (key == "every" || key == "patience")
    return readCount(value, key == "every" ? every : patience)
               ? Status()
               : refuse("a number of at least 1, or 0 for none");
  if (key == "ema") {
    ema = value == "true";
    return ema || value == "false" ? Status() : refuse("true or false");
  }
  if (key == "metrics")
    return makeError(Code::Usage,
                     "--set: eval.metrics is compiled in: change the recipe");
  if (key != "data" && key != "best")
    return makeError(Code::Usage, "--set: unknown key 'eval.", key,
                     "', expected eval.data, every, best, patience or ema");
  (key == "data" ? data : best) = value;
  return Status();
}

//===----------------------------------------------------------------------===//
// Evaluations of a run
//===----------------------------------------------------------------------===//

Evaluations::Evaluations(TrainingSession &session, const EvaluationPlan &plan,
                         bool quiet)
    : session(&session), plan(plan), quiet(quiet || session.rank() > 0),
      metrics(listMetrics(session.executable().program())) {}

Result<Evaluations> Evaluations::open(TrainingSession &session,
                                      const EvaluationPlan &plan,
                                      const std::optional<DataPlan> &data,
                                      bool quiet) {
  Evaluations evaluations(session, plan, quiet);
  std::string all = concat(data.has_value(), " ", plan.every, " ", plan.best,
                           " ", plan.patience, " ", plan.ema);
  if (Status status =
          session.compareRanks(digestOf(std::as_bytes(std::span(all))),
                               "another plan of evaluations");
      !status.ok())
    return status;
  if (!data)
    return evaluations;
  const EvaluationMetric *best = findMetric(evaluations.metrics, plan.best);
  if (!best || !best->isNumber()) {
    std::string known;
    for (const EvaluationMetric &metric : evaluations.metrics)
      if (metric.isNumber())
        known += (known.empty() ? "" : ", ") + metric.name;
    return makeError(Code::Usage, "eval.best is '", plan.best,
                     "', and the package's evaluations have ", known);
  }
  evaluations.best = best - evaluations.metrics.data();
  if (plan.ema)
    if (Status status = session.checkMeans(); !status.ok())
      return makeError(status.code(), "eval.ema: ", status.message());
  auto opened = Batches::open(session, format::EntryKind::eval, *data,
                              /*seed=*/0, /*shuffles=*/false);
  if (!opened.ok())
    return opened.takeStatus();
  evaluations.batches.emplace(std::move(*opened));
  if (!evaluations.quiet)
    noteLeftOut(evaluations.batches->loader());
  return evaluations;
}

int64_t Evaluations::getNext(int64_t step, int64_t last) const {
  if (!batches || step >= last)
    return std::numeric_limits<int64_t>::max();
  return plan.every ? std::min(last, (step / plan.every + 1) * plan.every)
                    : last;
}

/// Running means take the place of parameters meanwhile.
Result<std::optional<Evaluation>>
Evaluations::evaluate(const Between &between) {
  if (Status status = session->shareBuffers(); !status.ok())
    return status;
  if (!plan.ema)
    return evaluateAll(*session, *batches, between);
  if (Status status = session->exchangeMeans(); !status.ok())
    return status;
  auto evaluated = evaluateAll(*session, *batches, between);
  if (Status status = session->exchangeMeans(); !status.ok())
    return status;
  return evaluated;
}

/// A record that was made by another metric says nothing of this one.
void Evaluations::note(std::span<const double> sums) {
  std::optional<EvaluationRecord> &record = session->records().evaluation;
  if (!record || record->best != plan.best)
    record.emplace().best = plan.best;
  record->step = session->stepCount();
  record->metrics.clear();
  for (const EvaluationMetric &metric : metrics)
    if (metric.isNumber())
      record->metrics[metric.name] = metric.compute(sums)[0];
  double value = metrics[best].compute(sums)[0];
  ++record->waited;
  if (std::isnan(record->bestValue) ||
      metrics[best].isBetter(value, record->bestValue)) {
    record->bestValue = value;
    record->bestStep = record->step;
    record->waited = 0;
  }
}

Status Evaluations::interrupt(const std::function<Status()> &work) {
  if (!plan.ema)
    return work();
  if (Status status = session->exchangeMeans(); !status.ok())
    return status;
  Status done = work();
  Status status = session->exchangeMeans();
  return done.ok() ? std::move(status) : std::move(done);
}

Result<bool> Evaluations::run(const Between &between) {
  auto evaluated = evaluate(between);
  if (!evaluated.ok())
    return evaluated.takeStatus();
  const std::optional<Evaluation> &sum = *evaluated;
  if (!sum)
    return false;
  note(sum->sums);
  values = describeMetrics(metrics, sum->sums);
  batches->warnOfSkipped(quiet);
  if (!quiet)
    std::cerr << concat("tcc-run: evaluation after update ",
                        session->stepCount(), ": ",
                        formatMetrics(metrics, sum->sums), "\n");
  return true;
}

bool Evaluations::isMissed(int64_t step, int64_t last) const {
  const std::optional<EvaluationRecord> &record = session->records().evaluation;
  return step > 0 && isDue(step, last) && !(record && record->step == step);
}

bool Evaluations::isBest() const {
  const std::optional<EvaluationRecord> &record = session->records().evaluation;
  return record && record->step == session->stepCount() &&
         record->bestStep == record->step;
}

ordered_json Evaluations::valuesOf(int64_t step) const {
  const std::optional<EvaluationRecord> &record = session->records().evaluation;
  return record && record->step == step ? values : ordered_json();
}

bool Evaluations::isOver() const {
  const std::optional<EvaluationRecord> &record = session->records().evaluation;
  return batches && plan.patience > 0 && record &&
         record->waited >= plan.patience;
}
