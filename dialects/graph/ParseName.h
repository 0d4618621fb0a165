//===- ParseName.h - Enums of the package in attributes ---------*- C++ -*-===//
//
// The dialects print enums of runtime/package/Names.fbs by their names there.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_DIALECTS_GRAPH_PARSENAME_H
#define TCC_DIALECTS_GRAPH_PARSENAME_H

#include "runtime/package/Names.h"

#include "mlir/IR/OpImplementation.h"

namespace tcc::graph {

/// Parses the name of one of `all`.
template <typename Enum>
mlir::FailureOr<Enum> parseName(mlir::AsmParser &parser,
                                llvm::ArrayRef<Enum> all) {
  llvm::StringRef name;
  auto loc = parser.getCurrentLocation();
  if (failed(parser.parseKeyword(&name)))
    return mlir::failure();
  for (Enum value : all)
    if (name == format::nameOf(value))
      return value;
  return parser.emitError(loc) << "'" << name << "' is not known";
}

} // namespace tcc::graph

#endif // TCC_DIALECTS_GRAPH_PARSENAME_H
