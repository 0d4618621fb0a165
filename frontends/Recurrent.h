//===- Recurrent.h - LSTM, GRU and RNN over sequences -----------*- C++ -*-===//
//
// The product with the input weights is taken for all steps at once; a loop
// carries the states through the rest.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_FRONTENDS_RECURRENT_H
#define TCC_FRONTENDS_RECURRENT_H

#include "frontends/Emitter.h"
#include <functional>

namespace tcc {

/// One direction of a recurrent network. G is the number of gates, which lie
/// one after the other.
struct Recurrence {
  mlir::Value inputWeights;              // [G * hidden, input]
  mlir::Value recurrentWeights;          // [G * hidden, hidden]
  mlir::Value inputBias;                 // [G * hidden], or null
  mlir::Value recurrentBias;             // [G * hidden], or null
  mlir::Value peepholes;                 // [3 * hidden], or null
  llvm::SmallVector<mlir::Value> states; // [batch, hidden] each
  llvm::SmallVector<std::function<mlir::Value(mlir::Value)>> activations;
  /// Where the gates lie: of an LSTM input, forget, cell, output; of a GRU
  /// update, reset, hidden, the last one last.
  llvm::SmallVector<int64_t> order;
  bool isReverse = false;
  /// An LSTM whose forget gate is 1 - the input gate.
  bool isCoupled = false;
  /// A GRU that resets the product with the state, not the state.
  bool resetsProduct = false;
};

/// The next states from a step's input product [batch, G * hidden].
using RecurrentStep = llvm::SmallVector<mlir::Value>(
    Emitter &, const Recurrence &, mlir::Value product,
    llvm::ArrayRef<mlir::Value> states);
RecurrentStep stepLstm, stepGru, stepRnn;

/// Runs one direction over x [steps, batch, input], of which `lengths`, or
/// null, are the numbers of steps. Gives all outputs [steps, batch, hidden],
/// then the last states; empty after failing.
llvm::SmallVector<mlir::Value>
emitRecurrence(Emitter &emitter, RecurrentStep &step,
               const Recurrence &direction, mlir::Value x, mlir::Value lengths);

} // namespace tcc

#endif // TCC_FRONTENDS_RECURRENT_H
