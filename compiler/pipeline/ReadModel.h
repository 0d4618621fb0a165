//===- ReadModel.h - What all programs of a model begin with ----*- C++ -*-===//
#ifndef TCC_COMPILER_PIPELINE_READMODEL_H
#define TCC_COMPILER_PIPELINE_READMODEL_H

#include "compiler/pipeline/Variant.h"
#include "frontends/Frontend.h"

namespace tcc {

struct ReadResult {
  std::variant<Model, Refusal> outcome;
  std::vector<std::string> notes;
  PhaseTimes phases;
  int64_t ops = 0; ///< of the graph dialect, as imported
};

/// Imports the model that the options name for programs like `variant`, with
/// their weights, and recognises what its exporter wrote out; `last` may end it
/// before. A batch whose samples are for a search to find stays open.
ReadResult readModel(const CompileOptions &options, const Variant &variant,
                     mlir::MLIRContext *context, Phase last);

} // namespace tcc

#endif // TCC_COMPILER_PIPELINE_READMODEL_H
