//===- GraphDialect.h - The graph dialect -----------------------*- C++ -*-===//
#ifndef TCC_DIALECTS_GRAPH_GRAPHDIALECT_H
#define TCC_DIALECTS_GRAPH_GRAPHDIALECT_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"

namespace tcc::format {
enum class MetricRule : uint8_t;
enum class VariableKind : uint8_t;
enum class StepField : uint8_t;
} // namespace tcc::format

namespace tcc::graph {
using format::StepField;
using format::VariableKind;
} // namespace tcc::graph

#include "dialects/graph/GraphDialect.h.inc"
#include "dialects/graph/GraphEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/graph/GraphAttributes.h.inc"

#endif // TCC_DIALECTS_GRAPH_GRAPHDIALECT_H
