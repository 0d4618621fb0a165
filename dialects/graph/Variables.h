//===- Variables.h - The tensors that functions share -----------*- C++ -*-===//
#ifndef TCC_DIALECTS_GRAPH_VARIABLES_H
#define TCC_DIALECTS_GRAPH_VARIABLES_H

#include "dialects/graph/GraphDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace tcc::graph {

/// How many ranks divide variables of `module` among them; 0 where none do.
int64_t getRanks(mlir::ModuleOp module);

/// The variables of `module`, in order.
llvm::SmallVector<VariableAttr> getVariables(mlir::ModuleOp module);
/// The position of a variable among them, or their number.
size_t findVariable(llvm::ArrayRef<VariableAttr> variables,
                    mlir::StringAttr name);

/// Bytes of a tensor whose extents are known.
int64_t countBytes(mlir::RankedTensorType type);

/// Bytes from where a variable begins to where the next one does.
int64_t getRoom(VariableAttr variable);

/// Variables that lie in one piece of memory.
struct Bucket {
  size_t first;                       ///< the position of the first of them
  llvm::SmallVector<int64_t> offsets; ///< of each, in bytes
  int64_t bytes;                      ///< of all of it, with what is its room
};
/// The bucket that variable `index` is in, or nothing.
std::optional<Bucket> findBucket(llvm::ArrayRef<VariableAttr> variables,
                                 size_t index);

/// The variable that argument (result) `index` is the value of, or null.
mlir::StringAttr getArgVariable(mlir::FunctionOpInterface function,
                                unsigned index);
mlir::StringAttr getResultVariable(mlir::FunctionOpInterface function,
                                   unsigned index);

} // namespace tcc::graph

#endif // TCC_DIALECTS_GRAPH_VARIABLES_H
