//===- Evaluator.h - Reference evaluator of the graph dialect ---*- C++ -*-===//
//
// Slow and plain: floats are computed in f64 and integers in i64, and each op's
// result is rounded to its element type. It is the oracle of the tests and
// evaluates constants at compile time; nothing of it exists at run time.
//
// The context must have the dialects of registerEvaluatorDialects loaded.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_DIALECTS_GRAPH_EVALUATE_EVALUATOR_H
#define TCC_DIALECTS_GRAPH_EVALUATE_EVALUATOR_H

#include "dialects/graph/evaluate/HostTensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include <functional>
#include <memory>

namespace tcc {

/// What an evaluation may use before it is refused.
struct EvaluationLimits {
  int64_t bytes = int64_t(8) << 30; // of values, at 8 bytes an element
  int64_t work = int64_t(1) << 42;  // scalar instructions
};

class Evaluator {
public:
  using Tensors = llvm::SmallVector<HostTensor>;
  using WeightReader = std::function<llvm::Expected<HostTensor>(
      llvm::StringRef name, mlir::RankedTensorType type)>;

  /// `symbols`: the values of the module's symbols. `readWeight` gives the
  /// tensors of graph.weight; without it they are an error.
  explicit Evaluator(llvm::ArrayRef<int64_t> symbols = {},
                     WeightReader readWeight = nullptr,
                     EvaluationLimits limits = {})
      : symbols(symbols.begin(), symbols.end()),
        readWeight(std::move(readWeight)), left(limits) {}

  llvm::Expected<Tensors> evaluate(mlir::func::FuncOp function,
                                   llvm::ArrayRef<HostTensor> inputs);

  /// The results of `op` on these operands. It may not read other values.
  llvm::Expected<Tensors> evaluate(mlir::Operation *op,
                                   llvm::ArrayRef<HostTensor> operands);

private:
  /// Nested regions and decompositions that are followed.
  static constexpr int kMaxDepth = 64;

  llvm::Expected<Tensors> evaluateBlock(mlir::Block &block, Tensors arguments);
  llvm::Error evaluateInto(mlir::Operation *op);
  llvm::Expected<Tensors> dispatch(mlir::Operation *op);
  llvm::Expected<Tensors> evaluatePointwise(mlir::Operation *op);
  llvm::Expected<Tensors> evaluateElements(mlir::Operation *op);
  llvm::Expected<Tensors> evaluateReduction(mlir::Operation *op);
  llvm::Expected<Tensors> evaluateDecomposed(mlir::Operation *op);
  llvm::Expected<Tensors> evaluateDirect(mlir::Operation *op);
  llvm::Expected<Tensors> evaluateIf(mlir::Operation *op);
  llvm::Expected<Tensors> evaluateLoop(mlir::Operation *op);
  llvm::Expected<Tensors> evaluateReadSize(mlir::Operation *op);

  static Tensors makeTensors(HostTensor tensor);
  /// True if all symbols of `size` have values.
  bool isKnown(mlir::AffineExpr size) const;
  int64_t evaluateSize(mlir::AffineExpr size) const;
  void setSymbol(unsigned symbol, int64_t value);
  /// Sets those of the symbols that are extents of `types`, as `tensors` has
  /// them.
  void setSizes(llvm::ArrayRef<unsigned> defined, mlir::TypeRange types,
                llvm::ArrayRef<HostTensor> tensors);
  void define(mlir::Value value, HostTensor tensor);
  const HostTensor &get(mlir::Value value) { return *values.at(value); }
  Tensors getAll(mlir::ValueRange range);
  /// The type at the given symbol values.
  llvm::Expected<mlir::RankedTensorType> getType(mlir::Value value);
  llvm::Expected<HostTensor> allocate(mlir::Value value);
  llvm::Error spend(int64_t count, int64_t each);

  llvm::SmallVector<std::optional<int64_t>> symbols;
  WeightReader readWeight;
  EvaluationLimits left;
  int depth = 0; // of nested regions and decompositions
  llvm::DenseMap<mlir::Value, std::shared_ptr<const HostTensor>> values;
};

using ConstantValues = llvm::SmallVector<mlir::DenseElementsAttr>;

/// The results of `op`, an op without regions, on these operands, if they have
/// at most 64 KiB and take little work.
llvm::Expected<ConstantValues>
evaluateConstants(mlir::Operation *op,
                  llvm::ArrayRef<mlir::DenseElementsAttr> operands);

/// The same for an op whose operands are all graph.constant.
llvm::Expected<ConstantValues> evaluateConstants(mlir::Operation *op);

/// The dialects in which scalar bodies of ops are written.
void registerEvaluatorDialects(mlir::DialectRegistry &registry);

} // namespace tcc

#endif // TCC_DIALECTS_GRAPH_EVALUATE_EVALUATOR_H
