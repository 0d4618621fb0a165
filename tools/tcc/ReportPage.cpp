#include "tools/tcc/ReportPage.h"

#include "tools/tcc/ReportSections.h"

#include <algorithm>
#include <filesystem>

using namespace tcc;
using namespace tcc::tools;
using nlohmann::json;

static std::string printBytes(int64_t bytes) {
  static constexpr const char *kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = double(bytes);
  size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < std::size(kUnits); ++unit)
    value /= 1024;
  char text[48];
  std::snprintf(text, sizeof(text), "%.3g %s", value, kUnits[unit]);
  return text;
}

static std::string printPercent(double share) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.0f %%", 100 * share);
  return text;
}

/// "training by a recipe", "inference in bf16".
static std::string describeKind(const CompileOptions &options) {
  if (!options.recipeFile.empty())
    return "a training step by " +
           std::filesystem::path(options.recipeFile).filename().string();
  return "inference in " + getName(options.precision);
}

/// What limits the program, and what would change that.
static void addLimit(const CompileReport &report, Verdict &verdict) {
  constexpr double kMuch = 0.05;
  PredictedTime time = predict(report.launchUses);
  double all = time.getAll();
  if (all <= 0)
    return;
  std::string found = " of the predicted time is ", what, advice;
  if (time.start >= std::max(time.memory, time.arithmetic)) {
    found = printPercent(time.start / all) + found + "starting kernels";
    advice = "larger batches: --dim, or batch.micro of a recipe";
  } else if (time.memory >= time.arithmetic) {
    found = printPercent(time.memory / all) + found +
            "kernels whose bytes take longer than their operations";
    advice = "half of the bytes, where they are f32: --precision=bf16, or "
             "precision.compute of a recipe";
  } else {
    found = printPercent(time.arithmetic / all) + found +
            "kernels whose operations take longer than their bytes";
    advice = "faster plans of products for the machine: --candidates=8, then "
             "tcc-run tune";
  }
  verdict.lines.emplace_back("What limits it", found);
  if (report.recomputedShare > kMuch)
    advice =
        "a larger --memory-budget: " + printPercent(report.recomputedShare) +
        " of the predicted time computes values again; then " + advice;
  verdict.lines.emplace_back("What to do", advice);
}

static Verdict judge(const CompileOptions &options,
                     const CompileReport &report) {
  Verdict verdict;
  std::string needed = printBytes(report.memory.getTotal());
  if (options.memoryBudget.empty()) {
    verdict.text = "Needs " + needed +
                   " beside its inputs and outputs; no budget was given";
  } else {
    // What does not fit is refused before there is a page.
    verdict.state = Verdict::State::good;
    verdict.text =
        "Fits: needs " + needed + " of a budget of " + options.memoryBudget;
  }
  verdict.lines.emplace_back("What it is",
                             describeKind(options) + " on " + options.target);
  addLimit(report, verdict);
  return verdict;
}

static std::vector<Fact> listFacts(const CompileReport &report) {
  const MemoryPlan &memory = report.memory;
  std::vector<Fact> facts;
  if (report.microBatch > 0)
    facts.push_back({"Samples of a pass", report.microBatch, "count",
                     "as many as the budget has room for"});
  facts.push_back(
      {"Arena", memory.arena, "bytes",
       "at least " + printBytes(report.arenaBoundBytes) + " are live at once"});
  if (memory.variables > 0)
    facts.push_back({"Variables", memory.variables, "bytes",
                     "parameters, gradients, slots"});
  facts.push_back({"Constants", memory.constants, "bytes"});
  facts.push_back({"Launches", report.launches, "count",
                   "of " + std::to_string(report.kernels) + " kernels, for " +
                       std::to_string(report.ops) + " ops"});
  facts.push_back({"Operations", report.flops, "flops", "of a run or update"});
  facts.push_back(
      {"Memory traffic", report.bytes, "bytes", "of a run or update"});
  return facts;
}

std::string tools::makeReportPage(const CompileOptions &options,
                                  const CompileReport &report) {
  json decisions = json::parse(report.decisions, nullptr, false);
  if (!decisions.is_array())
    decisions = json::array();
  Page page(std::filesystem::path(options.model).filename().string(),
            "What tcc decided before the first run. Nothing on this page is "
            "measured but the compiler's own time.");
  page.set(judge(options, report));
  page.set(listFacts(report));
  page.add(describeMemory(report));
  page.add(describeTime(report));
  page.add(describeFusion(decisions));
  page.add(describePrecision(report, decisions));
  page.add(listOtherDecisions(decisions));
  page.add(describeCompilation(report));
  return page.print();
}
