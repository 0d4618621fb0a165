//===- Variant.h - What programs of one model differ in ---------*- C++ -*-===//
#ifndef TCC_COMPILER_PIPELINE_VARIANT_H
#define TCC_COMPILER_PIPELINE_VARIANT_H

#include "compiler/pipeline/Budget.h"
#include "compiler/pipeline/Phases.h"
#include "compiler/pipeline/Refusal.h"
#include "compiler/train/Recipe.h"
#include "runtime/package/Tunings.h"

#include <memory>
#include <variant>

namespace tcc {

/// One program of a model: together they decide every byte of it.
struct Variant {
  const Target *target = nullptr;
  PrecisionRules precision;
  /// How it trains the model, if it does.
  std::optional<train::Recipe> recipe;
  /// Samples of a pass, where the recipe leaves them open.
  std::optional<int64_t> samples;
  /// Steps that train compute wide logits, their loss and its gradients some
  /// rows at a time.
  bool chunksLogits = false;
  /// The gradients that @main returns, if it does not train.
  GradientRequest gradients;
  std::optional<Budget> budget;
  int threads = 1;    ///< that it will run on
  int candidates = 1; ///< plans of a kernel at most
  /// What was measured of kernels, null if nothing was; of that what so many
  /// threads took counts first.
  std::shared_ptr<const runtime::Tunings> tunings;
  int tunedThreads = 1;

  /// The samples of a pass are for a search to find.
  bool searchesSamples() const {
    return recipe && recipe->batch.micro == train::BatchRecipe::kAuto;
  }
  /// Whether logits are whole or in chunks is for a search to find.
  bool searchesChunks() const {
    return recipe && budget && recipe->recomputes();
  }
};

/// The program that the options and their recipe ask for.
std::variant<Variant, Refusal> readVariant(const CompileOptions &options,
                                           const Target &target);

} // namespace tcc

#endif // TCC_COMPILER_PIPELINE_VARIANT_H
