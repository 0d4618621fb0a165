//===- NodeNames.h - Nodes of the model that an op came from ----*- C++ -*-===//
//
// A node's name is a NameLoc in the location of each op that it became; ops
// that were fused have the names of all of them.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_DIALECTS_GRAPH_NODENAMES_H
#define TCC_DIALECTS_GRAPH_NODENAMES_H

#include "mlir/IR/Location.h"
#include "llvm/ADT/SetVector.h"
#include <string>

namespace tcc {

/// The model's name of the node that `op` came from: the first name in its
/// location, else the name of the op.
std::string getNodeName(mlir::Operation *op);
/// All nodes that `location` names, each once.
llvm::SetVector<llvm::StringRef> getNodeNames(mlir::Location location);

} // namespace tcc

#endif // TCC_DIALECTS_GRAPH_NODENAMES_H
