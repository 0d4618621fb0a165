#include "runtime/data/Npy.h"
#include "tools/tcc-run/Compare.h"
#include "tools/tcc-run/Elements.h"
#include "tools/tcc-run/Inputs.h"
#include "tools/tcc-run/Json.h"
#include "tools/tcc-run/Session.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>
#include <iostream>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;
using nlohmann::ordered_json;

/// How many elements of an output are shown.
static constexpr size_t kShownElements = 8;

static std::string_view outputName(const Context &context, size_t index) {
  return context.entry().outputs()->Get(index)->name()->string_view();
}

static Status writeOutputs(const Context &context, const std::string &dir) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (error)
    return makeError(Code::Io, "cannot create '", dir, "': ", error.message());
  for (size_t i = 0; i < context.outputCount(); ++i) {
    TensorView output = context.output(i);
    if (Status status = writeNpy(concat(dir, "/output_", i, ".npy"),
                                 output.dtype, output.shape, output.data);
        !status.ok())
      return status;
  }
  return Status();
}

static Result<std::vector<Comparison>>
compareOutputs(const Context &context, const RunOptions &options) {
  std::vector<Comparison> comparisons;
  for (size_t i = 0; i < context.outputCount(); ++i) {
    std::string stem = concat("output_", i);
    auto expected = findTensorFile(options.expectDir, stem);
    if (!expected.ok())
      return expected.takeStatus();
    if (!*expected)
      return makeError(Code::Io, "there is no ", stem, ".npy or ", stem,
                       ".pb in '", options.expectDir, "'");
    comparisons.push_back(
        compare(context.output(i), **expected, options.tolerance));
  }
  return comparisons;
}

/// One object per output; `max_abs` is the largest difference from what was
/// expected, null where nothing was or where it is not finite.
static ordered_json describe(const Context &context,
                             const std::vector<Comparison> &comparisons) {
  ordered_json outputs = ordered_json::array();
  for (size_t i = 0; i < context.outputCount(); ++i) {
    TensorView output = context.output(i);
    ordered_json row;
    row["name"] = outputName(context, i);
    row["dtype"] = traitsOf(output.dtype).name;
    row["shape"] =
        std::vector<int64_t>(output.shape.begin(), output.shape.end());
    bool isFinite =
        i < comparisons.size() && std::isfinite(comparisons[i].maxDifference);
    row["max_abs"] =
        isFinite ? ordered_json(comparisons[i].maxDifference) : ordered_json();
    row["ok"] = i >= comparisons.size() || comparisons[i].ok;
    outputs.push_back(std::move(row));
  }
  return {{"schema_version", 1}, {"outputs", outputs}};
}

static void printOutputs(const Context &context) {
  for (size_t i = 0; i < context.outputCount(); ++i) {
    TensorView output = context.output(i);
    std::cout << outputName(context, i) << ": " << traitsOf(output.dtype).name
              << ' ' << formatShape(output.shape) << " =";
    size_t count = elementCount(output.shape);
    for (size_t j = 0; j < std::min(count, kShownElements); ++j)
      std::cout << ' ' << formatElement(output.dtype, output.data, j);
    std::cout << (count > kShownElements ? " ...\n" : "\n");
  }
}

/// Returns the exit code: 1 if any comparison failed.
static int reportComparisons(const Context &context,
                             const std::vector<Comparison> &comparisons) {
  int code = 0;
  for (size_t i = 0; i < comparisons.size(); ++i) {
    if (comparisons[i].ok)
      continue;
    std::cerr << "tcc-run: error: output '" << outputName(context, i)
              << "': " << comparisons[i].problem << '\n';
    code = static_cast<int>(Code::Mismatch);
  }
  return code;
}

int tools::runCommand(const RunOptions &options) {
  Result<Session> session = openSession(options.running, options.inputs);
  if (!session.ok())
    return report(session.takeStatus());
  Context &context = *session->context;
  if (Status status = context.run(); !status.ok())
    return report(status);
  if (Status status = context.fetchStates(); !status.ok())
    return report(status);
  if (!options.outputDir.empty())
    if (Status status = writeOutputs(context, options.outputDir); !status.ok())
      return report(status);
  std::vector<Comparison> comparisons;
  if (!options.expectDir.empty()) {
    auto compared = compareOutputs(context, options);
    if (!compared.ok())
      return report(compared.takeStatus());
    comparisons = std::move(*compared);
  }
  if (options.running.json)
    printJson(describe(context, comparisons));
  else if (!options.running.quiet)
    printOutputs(context);
  return reportComparisons(context, comparisons);
}
