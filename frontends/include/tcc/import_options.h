//===- tcc/import_options.h - How a model is read ---------------*- C++ -*-===//
#ifndef TCC_IMPORT_OPTIONS_H
#define TCC_IMPORT_OPTIONS_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tcc {

/// The sizes that a symbolic dimension of the inputs may have: the multiples of
/// step in [min, max]. A fixed size has min == max.
struct DimBinding {
  std::string name;
  int64_t min, max;
  int64_t step = 1;
  /// These alone, each a size of one variant of the program; empty: all. Lists
  /// of several dimensions are as long, and paired by place.
  std::vector<int64_t> sizes = {};
};

struct InputShape {
  std::string name;
  std::vector<int64_t> extents;
};

/// An input fixed at compile time: one number, or one an element, separated by
/// commas, in the notation of the input's element type.
struct InputValue {
  std::string name;
  std::string text;
};

/// How many elements a sequence or an optional has, as an input; nullopt for an
/// optional that is absent.
struct InputLength {
  std::string name;
  std::optional<int64_t> count;
};

/// The most that a size which each run computes may be.
struct SizeBound {
  std::string name;
  int64_t max;
};

/// An output that is an input of the next run.
struct StatePair {
  std::string output, input;
};

struct ImportOptions {
  std::vector<DimBinding> dims;
  std::vector<InputShape> inputShapes;
  std::vector<InputValue> inputValues;
  std::vector<InputLength> inputLengths;
  std::vector<SizeBound> bounds;
  /// The values of the model to return; its outputs if empty.
  std::vector<std::string> outputs;
  std::vector<StatePair> states;
  /// Libraries that define operators (tcc/op.h).
  std::vector<std::string> plugins;
  /// The sizes of the batch, where the model leaves it open and `dims` do too:
  /// it stays open between them.
  int64_t minBatch = 1, maxBatch = 1;
  /// False: operators of plugins that have a body are made of it alone.
  bool usesPluginKernels = true;
  /// The model is to be trained: its dropouts stay ops.
  bool trains = false;
  /// False leaves the weights out of the package: external data is not opened.
  bool readWeights = true;
};

} // namespace tcc

#endif // TCC_IMPORT_OPTIONS_H
