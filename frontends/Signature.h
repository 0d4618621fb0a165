//===- Signature.h - Inputs of a model and their dimensions -----*- C++ -*-===//
#ifndef TCC_FRONTENDS_SIGNATURE_H
#define TCC_FRONTENDS_SIGNATURE_H

#include "frontends/Frontend.h"
#include "frontends/Sizes.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace tcc {

/// A dimension of an input: an extent, or a name where it is open.
struct Dim {
  std::string name;
  int64_t extent = 0;
  /// What the file says of an open one.
  int64_t min = 0, max = kMaxElements;
};

/// An input as the file describes it; without dims, the options must give them.
struct DeclaredInput {
  std::string name;
  mlir::Type elementType;
  std::optional<llvm::SmallVector<Dim>> dims;
};

struct ModelInput {
  std::string name;
  mlir::RankedTensorType type;
  /// Little-endian elements of a fixed input.
  std::optional<std::string> fixed;
};

/// Resolves the inputs of a model under the given options: dimensions get their
/// bindings or become symbols.
class Signature {
public:
  Signature(const ImportOptions &options, Sizes &sizes, Problems &problems,
            std::vector<std::string> &notes)
      : options(options), sizes(sizes), problems(problems), notes(notes) {}

  /// The length of an input that is a sequence, an optional or both; null after
  /// reporting that it is not given, or does not fit.
  const InputLength *findLength(const std::string &name, bool isSequence,
                                bool isOptional);
  /// Adds an input; those of a model have different names.
  void add(DeclaredInput input);
  std::vector<ModelInput> resolve();
  /// Model::batch of the resolved inputs.
  std::string getBatch() const;
  /// Model::variants of the resolved inputs.
  std::vector<llvm::StringMap<int64_t>> takeVariants() {
    return std::move(variants);
  }

private:
  struct Input {
    std::string name;
    mlir::Type elementType;
    llvm::SmallVector<Dim> dims;
  };

  void applyInputShapes();
  void applyShape(Input &input, const InputShape &shape);
  void bindDims();
  /// Bindings must keep to what the file allows.
  void checkRanges();
  void bind(DimBinding binding);
  void findBatch();
  void bindBatch();
  /// Lists of sizes must go together.
  void checkLists();
  void addSizes(const std::string &symbol, const DimBinding &binding);
  mlir::AffineExpr getExtent(const Input &input, const Dim &dim);
  void applyFixedValue(ModelInput &input);
  void checkNames();
  void usage(const llvm::Twine &message);

  const ImportOptions &options;
  Sizes &sizes;
  Problems &problems;
  std::vector<std::string> &notes;
  std::vector<Input> inputs;
  llvm::StringSet<> containers; ///< inputs that are sequences or optionals
  /// The open dimension that all inputs with dimensions begin with, or empty.
  std::string batch;
  llvm::StringMap<DimBinding> bindings;
  llvm::StringMap<mlir::AffineExpr> extents;
  std::vector<llvm::StringMap<int64_t>> variants;
};

} // namespace tcc

#endif // TCC_FRONTENDS_SIGNATURE_H
