#include "dialects/graph/NodeNames.h"

#include "mlir/IR/Operation.h"

using namespace mlir;

namespace tcc {

NameLoc makeNodeLocation(MLIRContext *context, const NodeOrigin &origin) {
  Location location = UnknownLoc::get(context);
  auto name = [&](StringRef part) {
    return NameLoc::get(StringAttr::get(context, part), location);
  };
  if (!origin.module.empty())
    location = name(origin.module);
  location = name(origin.op);
  return name(origin.name);
}

/// The location of the first node that is named there, or null.
static NameLoc findNode(Location location) {
  NameLoc found;
  location->walk([&](Location part) {
    found = dyn_cast<NameLoc>(part);
    return found ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found;
}

NodeOrigin getOrigin(Location location) {
  NodeOrigin origin;
  NameLoc part = findNode(location);
  for (StringRef *text : {&origin.name, &origin.op, &origin.module}) {
    if (!part)
      break;
    *text = part.getName().getValue();
    part = dyn_cast<NameLoc>(part.getChildLoc());
  }
  return origin;
}

std::string getNodeName(Operation *op) {
  NameLoc node = findNode(op->getLoc());
  return node ? node.getName().str() : op->getName().getStringRef().str();
}

/// What lies in the location of a node is no node.
static void addNodeNames(Location location, llvm::SetVector<StringRef> &names) {
  if (auto named = dyn_cast<NameLoc>(location))
    names.insert(named.getName().getValue());
  else if (auto fused = dyn_cast<FusedLoc>(location))
    for (Location part : fused.getLocations())
      addNodeNames(part, names);
}

llvm::SetVector<StringRef> getNodeNames(Location location) {
  llvm::SetVector<StringRef> names;
  addNodeNames(location, names);
  return names;
}

} // namespace tcc
