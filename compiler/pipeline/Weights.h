//===- Weights.h - Other values for a model's weights -----------*- C++ -*-===//
#ifndef TCC_COMPILER_PIPELINE_WEIGHTS_H
#define TCC_COMPILER_PIPELINE_WEIGHTS_H

#include "frontends/Frontend.h"
#include "runtime/base/Status.h"

namespace tcc {

/// Replaces the values of the model's weights by those of a safetensors file,
/// which has tensors of the same names, types and shapes, or the transposes of
/// matrices that the exporter transposed under a name of its own. What decided
/// a shape, a branch or a pattern at import keeps its value.
runtime::Status replaceWeights(Model &model, const std::string &path);

} // namespace tcc

#endif // TCC_COMPILER_PIPELINE_WEIGHTS_H
