//===- NodeNames.h - Nodes of the model that an op came from ----*- C++ -*-===//
//
// A node's name is a NameLoc in the location of each op that it became; ops
// that were fused have the names of all of them. Its child is a NameLoc of the
// operator that the model has there, whose child is a NameLoc of the module.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_DIALECTS_GRAPH_NODENAMES_H
#define TCC_DIALECTS_GRAPH_NODENAMES_H

#include "mlir/IR/Location.h"
#include "llvm/ADT/SetVector.h"
#include <string>

namespace tcc {

/// What a model says of a node.
struct NodeOrigin {
  llvm::StringRef name;
  llvm::StringRef op;     ///< its operator, as "Conv" or "aten.conv2d"
  llvm::StringRef module; ///< the path of its module, as "layers.0"; may be ""
};

/// The location of the ops of a node.
mlir::NameLoc makeNodeLocation(mlir::MLIRContext *context,
                               const NodeOrigin &origin);
/// The first node that `location` names; what it does not say is "".
NodeOrigin getOrigin(mlir::Location location);

/// The model's name of the node that `op` came from: the first name in its
/// location, else the name of the op.
std::string getNodeName(mlir::Operation *op);
/// All nodes that `location` names, each once.
llvm::SetVector<llvm::StringRef> getNodeNames(mlir::Location location);

} // namespace tcc

#endif // TCC_DIALECTS_GRAPH_NODENAMES_H
