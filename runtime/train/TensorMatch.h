//===- TensorMatch.h - Tensors of a file for variables ----------*- C++ -*-===//
#ifndef TCC_RUNTIME_TRAIN_TENSORMATCH_H
#define TCC_RUNTIME_TRAIN_TENSORMATCH_H

#include "runtime/executor/Variables.h"
#include "runtime/package/Safetensors.h"

#include <map>

namespace tcc::runtime {

/// The model's own: a parameter or buffer.
bool isOfModel(const format::Variable &variable);

/// The tensors of a file that are slices, by name.
using Slices = std::map<std::string, Slice, std::less<>>;

struct MatchOptions {
  bool (*isRequired)(const format::Variable &) = nullptr;
  bool (*isAllowed)(const format::Variable &) = nullptr;
  bool convertsFloats = false; ///< from one type to another
  Slices slices;
};

struct TensorMatch {
  size_t variable;
  const StoredTensor *tensor;
  std::vector<int64_t> begin; ///< of the variable's elements in the tensor
};

/// Pairs tensors of the file `path` with variables by name, in the order of
/// variables: each has all elements of its variable, whatever slices of the
/// same tensor both are. One error lists all that is missing, unexpected, or of
/// another type.
Result<std::vector<TensorMatch>>
matchTensors(const Variables &variables, std::span<const StoredTensor> tensors,
             const std::string &path, const MatchOptions &options);

Status copyTensors(Variables &variables, std::span<const TensorMatch> matches);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_TRAIN_TENSORMATCH_H
