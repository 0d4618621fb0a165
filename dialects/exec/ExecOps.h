//===- ExecOps.h - The ops of the exec dialect ------------------*- C++ -*-===//
#ifndef TCC_DIALECTS_EXEC_EXECOPS_H
#define TCC_DIALECTS_EXEC_EXECOPS_H

#include "dialects/exec/ExecDialect.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include <optional>

#include "dialects/exec/ExecInterfaces.h.inc"

#define GET_OP_CLASSES
#include "dialects/exec/Program.h.inc"
#define GET_OP_CLASSES
#include "dialects/exec/Buffer.h.inc"
#define GET_OP_CLASSES
#include "dialects/exec/Command.h.inc"
#define GET_OP_CLASSES
#include "dialects/exec/Control.h.inc"
#define GET_OP_CLASSES
#include "dialects/exec/Lane.h.inc"
#define GET_OP_CLASSES
#include "dialects/exec/Collective.h.inc"

namespace tcc::exec {

/// The buffer that `buffer` is, or is a view of.
BufferOp getRoot(mlir::Value buffer);

/// The commands that use `buffer` or a view of it, or wait for one that does.
llvm::SetVector<mlir::Operation *> getCommands(mlir::Value buffer);

/// True if `map` gives `count` values of size slots and nothing else.
bool isSizeMap(mlir::AffineMap map, unsigned count);

/// Checks slots, events and collectives of a whole entry point.
mlir::LogicalResult verifyEntry(EntryOp entry);

} // namespace tcc::exec

#endif // TCC_DIALECTS_EXEC_EXECOPS_H
