//===- ExecDialect.h - The exec dialect -------------------------*- C++ -*-===//
#ifndef TCC_DIALECTS_EXEC_EXECDIALECT_H
#define TCC_DIALECTS_EXEC_EXECDIALECT_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"

namespace tcc::format {
enum class StepKind : uint8_t;
enum class WorkKind : uint8_t;
} // namespace tcc::format

#include "dialects/exec/ExecDialect.h.inc"
#include "dialects/exec/ExecEnums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/exec/ExecTypes.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/exec/ExecAttributes.h.inc"

#endif // TCC_DIALECTS_EXEC_EXECDIALECT_H
