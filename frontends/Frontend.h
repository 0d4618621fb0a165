//===- Frontend.h - Model files to graph modules ----------------*- C++ -*-===//
//
// The result is a module with one function @main. Its arguments are the model's
// inputs in order, each with `graph.name` and, where they apply, `graph.fixed`
// (the dense value that the input must have) and `graph.index_range` (array of
// the smallest and largest value that indexing ops allow). Its results carry
// `graph.name`. The function attribute `graph.states` lists [input, output]
// pairs of positions.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_FRONTENDS_FRONTEND_H
#define TCC_FRONTENDS_FRONTEND_H

#include "frontends/Problems.h"
#include "frontends/WeightStore.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <string>
#include <vector>

namespace tcc {

/// `--dim NAME=MIN..MAX`; a fixed size has min == max.
struct DimBinding {
  std::string name;
  int64_t min, max;
};

/// `--input-shape NAME=1x3x224x224`
struct InputShape {
  std::string name;
  std::vector<int64_t> extents;
};

/// `--input-value NAME=V`: one number, or one an element, separated by commas.
struct InputValue {
  std::string name;
  std::string text;
};

/// `--state OUT=IN`
struct StatePair {
  std::string output, input;
};

struct ImportOptions {
  std::vector<DimBinding> dims;
  std::vector<InputShape> inputShapes;
  std::vector<InputValue> inputValues;
  /// The values of the model to return; its outputs if empty.
  std::vector<std::string> outputs;
  std::vector<StatePair> states;
  /// False for `--weights=none`: external data is not opened.
  bool readWeights = true;
};

/// A named text of the model's author, such as the alphabet of a recogniser.
struct MetadataEntry {
  std::string key, value;
};

struct Model {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  WeightStore weights;
  std::vector<MetadataEntry> metadata;
  /// What the user should know, such as a dimension that got a default.
  std::vector<std::string> notes;
};

/// Parses `NAME=N` or `NAME=MIN..MAX`; nullopt if it is neither.
std::optional<DimBinding> parseDimBinding(llvm::StringRef text);
/// Parses `NAME=1x3x224x224`; `NAME=` is a scalar.
std::optional<InputShape> parseInputShape(llvm::StringRef text);

/// Imports the model file `path`. On failure `problems` is not empty: it lists
/// all that is wrong with the file, the options, or their match.
mlir::FailureOr<Model> importModel(llvm::StringRef path,
                                   const ImportOptions &options,
                                   mlir::MLIRContext *context,
                                   Problems &problems);

} // namespace tcc

#endif // TCC_FRONTENDS_FRONTEND_H
