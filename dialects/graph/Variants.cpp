#include "dialects/graph/Variants.h"

#include "runtime/package/Names.h"

using namespace mlir;

namespace tcc::graph {

SmallVector<func::FuncOp> getMains(ModuleOp module) {
  SmallVector<func::FuncOp> mains;
  for (;;) {
    std::string name =
        format::nameOf(format::EntryKind::main, uint16_t(mains.size()));
    auto main = module.lookupSymbol<func::FuncOp>(name);
    if (!main)
      return mains;
    mains.push_back(main);
  }
}

} // namespace tcc::graph
