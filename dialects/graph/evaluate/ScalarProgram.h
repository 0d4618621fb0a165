//===- ScalarProgram.h - Interprets scalar IR -------------------*- C++ -*-===//
//
// The scalar bodies of graph ops (arith, math, scf, loads) as a flat list of
// instructions. Floats of every width are computed in f64, integers wrap at
// their width.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_DIALECTS_GRAPH_EVALUATE_SCALARPROGRAM_H
#define TCC_DIALECTS_GRAPH_EVALUATE_SCALARPROGRAM_H

#include "dialects/graph/evaluate/HostTensor.h"
#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"

namespace tcc {

struct Instruction {
  enum class Kind {
    compute,    // result = function(operands)
    copy,       // result = operand 0
    load,       // result = tensor[operands]
    jump,       // go to target
    jumpUnless, // go to target if operand 0 is false
    check,      // fail with `message` if operand 0 is false
  };
  using Function = Scalar (*)(const Instruction &, const Scalar *operands);

  Kind kind = Kind::compute;
  Function function = nullptr;
  llvm::SmallVector<unsigned, 3> operands; // slots
  unsigned result = 0;                     // slot
  unsigned width = 64;                     // bits of the result
  unsigned operandWidth = 64;              // bits of operand 0
  int64_t predicate = 0;                   // of a comparison
  mlir::Type type;                         // of the result
  const HostTensor *tensor = nullptr;
  size_t target = 0;
  std::string message;
};

class ScalarProgram {
public:
  /// Buffers that memref.load reads: block arguments standing for tensors.
  using Buffers = llvm::DenseMap<mlir::Value, const HostTensor *>;

  /// The program that computes `results` from the arguments of `block` that are
  /// not buffers, in order. `block` needs no terminator.
  static llvm::Expected<ScalarProgram>
  compile(mlir::Block &block, mlir::ValueRange results,
          const Buffers &buffers = Buffers());

  /// Runs once. The results stay valid until the next run.
  llvm::Expected<llvm::ArrayRef<Scalar>> run(llvm::ArrayRef<Scalar> arguments);

  /// Instructions, as a measure of the work of a run.
  int64_t size() const { return int64_t(instructions.size()) + 1; }

private:
  friend class ScalarCompiler;
  std::vector<Instruction> instructions;
  std::vector<Scalar> slots; // arguments first
  std::vector<unsigned> resultSlots;
  std::vector<Scalar> results;
};

} // namespace tcc

#endif // TCC_DIALECTS_GRAPH_EVALUATE_SCALARPROGRAM_H
