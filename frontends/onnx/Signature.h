//===- Signature.h - Inputs of a model and their dimensions -----*- C++ -*-===//
#ifndef TCC_FRONTENDS_ONNX_SIGNATURE_H
#define TCC_FRONTENDS_ONNX_SIGNATURE_H

#include "frontends/Frontend.h"
#include "frontends/Sizes.h"
#include "onnx.pb.h"
#include "llvm/ADT/StringSet.h"

namespace tcc::onnx_import {

struct ModelInput {
  std::string name;
  mlir::RankedTensorType type;
  /// Little-endian elements of a fixed input.
  std::optional<std::string> fixed;
};

/// Resolves the inputs of a graph under the given options: dimensions get their
/// bindings or become symbols.
class Signature {
public:
  Signature(const onnx::GraphProto &graph, const ImportOptions &options,
            Sizes &sizes, mlir::MLIRContext *context, Problems &problems,
            std::vector<std::string> &notes)
      : graph(graph), options(options), sizes(sizes), context(context),
        problems(problems), notes(notes) {}

  std::vector<ModelInput> resolve();
  /// Inputs that are none of resolve's; they are reported.
  llvm::ArrayRef<std::string> getRefused() const { return refused; }

private:
  /// A dimension of an input: an extent, or a name.
  struct Dim {
    std::string name;
    int64_t extent = 0;
  };
  struct Input {
    const onnx::ValueInfoProto *info;
    mlir::Type elementType;
    llvm::SmallVector<Dim> dims;
  };

  void collectInputs();
  void addInput(const onnx::ValueInfoProto &info);
  void applyInputShapes();
  void applyShape(Input &input, const InputShape &shape);
  void bindDims();
  void bind(DimBinding binding);
  void bindBatch();
  mlir::AffineExpr getExtent(const Input &input, const Dim &dim);
  void applyFixedValue(ModelInput &input);
  void checkNames();
  void usage(const llvm::Twine &message);
  void refuse(const onnx::ValueInfoProto &info, const llvm::Twine &reason);

  const onnx::GraphProto &graph;
  const ImportOptions &options;
  Sizes &sizes;
  mlir::MLIRContext *context;
  Problems &problems;
  std::vector<std::string> &notes;
  std::vector<Input> inputs;
  std::vector<std::string> refused;
  llvm::StringMap<DimBinding> bindings;
  llvm::StringMap<mlir::AffineExpr> extents;
};

} // namespace tcc::onnx_import

#endif // TCC_FRONTENDS_ONNX_SIGNATURE_H
