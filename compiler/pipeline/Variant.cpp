#include "compiler/pipeline/Variant.h"

#include "runtime/base/ThreadPool.h"

#include <thread>

using tcc::runtime::Code;

namespace tcc {

static std::optional<Refusal> readRecipe(const CompileOptions &options,
                                         Variant &variant) {
  const std::string &file = options.recipeFile;
  if (file.empty())
    return std::nullopt;
  Problems problems;
  variant.recipe = train::readRecipeFile(file, problems);
  if (!variant.recipe)
    return makeRefusal(problems);
  const TargetCapabilities &able = variant.target->getCapabilities();
  if (!able.hasTf32 && variant.recipe->compute == Precision::TF32) {
    auto hasIt = [](const Target &x) { return x.getCapabilities().hasTf32; };
    return makeRefusal(Code::Unsupported,
                       file + ": precision.compute = 'tf32' needs --target=" +
                           listTargets(hasIt) + ": no CPU has such products");
  }
  if (!able.hasExactSums && variant.recipe->parallel.exact) {
    auto hasIt = [](const Target &x) {
      return x.getCapabilities().hasExactSums;
    };
    return makeRefusal(
        Code::Unsupported,
        file + ": parallel.exact needs --target=" + listTargets(hasIt) +
            ": ranks on a GPU add up in an order of their "
            "library's");
  }
  return std::nullopt;
}

/// A module that trains in f64 is of it already.
static PrecisionRules getPrecision(const train::Recipe &recipe) {
  PrecisionRules rules;
  if (recipe.compute != Precision::F64)
    rules.type = recipe.compute;
  for (const train::Pattern &pattern : recipe.keepF32)
    rules.keepF32.push_back(pattern.text);
  return rules;
}

static std::optional<Refusal> readBudget(const CompileOptions &options,
                                         Variant &variant) {
  std::string text = options.memoryBudget;
  if (text.empty() && variant.recipe)
    text = variant.recipe->memoryBudget;
  std::string problem = readBudget(text, options.reserve, variant.budget);
  if (!problem.empty())
    return makeRefusal(Code::Usage, problem);
  if (variant.searchesSamples() && !variant.budget)
    return makeRefusal(Code::Usage,
                       options.recipeFile +
                           ": batch.micro = 'auto' needs memory.budget or "
                           "--memory-budget");
  return std::nullopt;
}

static std::optional<Refusal> readTunings(const CompileOptions &options,
                                          Variant &variant) {
  variant.candidates = options.candidates;
  if (options.tuneCache.empty())
    return std::nullopt;
  runtime::Result<runtime::Tunings> tunings =
      runtime::Tunings::read(options.tuneCache);
  if (!tunings.ok())
    return makeRefusal(tunings.takeStatus());
  variant.tunedThreads =
      options.threads > 0 ? options.threads : runtime::defaultThreadCount();
  variant.tunings =
      std::make_shared<const runtime::Tunings>(std::move(*tunings));
  return std::nullopt;
}

std::variant<Variant, Refusal> readVariant(const CompileOptions &options,
                                           const Target &target) {
  Variant variant;
  variant.target = &target;
  if (std::optional<Refusal> refusal = readRecipe(options, variant))
    return std::move(*refusal);
  if (std::optional<Refusal> refusal = readBudget(options, variant))
    return std::move(*refusal);
  if (std::optional<Refusal> refusal = readTunings(options, variant))
    return std::move(*refusal);
  if (variant.recipe && variant.recipe->parallel.bucket.bytes == 0)
    variant.recipe->parallel.bucket.bytes =
        target.getCapabilities().bucketBytes;
  variant.precision = variant.recipe ? getPrecision(*variant.recipe)
                                     : PrecisionRules{options.precision, {}};
  variant.gradients = {options.gradientOf, options.gradientWrt};
  int cores = std::max(1u, std::thread::hardware_concurrency());
  variant.threads = options.threads > 0 ? options.threads : cores;
  return variant;
}

} // namespace tcc
