//===- GraphDialect.h - The graph dialect -----------------------*- C++ -*-===//
#ifndef TCC_DIALECTS_GRAPH_GRAPHDIALECT_H
#define TCC_DIALECTS_GRAPH_GRAPHDIALECT_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"

#include "dialects/graph/GraphDialect.h.inc"
#include "dialects/graph/GraphEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/graph/GraphAttributes.h.inc"

#endif // TCC_DIALECTS_GRAPH_GRAPHDIALECT_H
