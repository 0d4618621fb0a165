#include "dialects/graph/NodeNames.h"

#include "mlir/IR/Operation.h"

using namespace mlir;

namespace tcc {

std::string getNodeName(Operation *op) {
  std::string name;
  op->getLoc()->walk([&](Location location) {
    auto named = dyn_cast<NameLoc>(location);
    if (!named)
      return WalkResult::advance();
    name = named.getName().str();
    return WalkResult::interrupt();
  });
  return name.empty() ? op->getName().getStringRef().str() : name;
}

llvm::SetVector<StringRef> getNodeNames(Location location) {
  llvm::SetVector<StringRef> names;
  location->walk([&](Location part) {
    auto named = dyn_cast<NameLoc>(part);
    if (named)
      names.insert(named.getName().getValue());
    return named ? WalkResult::skip() : WalkResult::advance();
  });
  return names;
}

} // namespace tcc
