#include "dialects/exec/KernelHash.h"

#include "mlir/IR/OperationSupport.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace tcc::exec {

std::string hashOf(KernelOp kernel) {
  OwningOpRef<Operation *> computation(kernel.getComputation()->clone());
  computation->removeAttr("plan");
  std::string text;
  llvm::raw_string_ostream stream(text);
  computation->print(stream, OpPrintingFlags().useLocalScope());
  llvm::XXH128_hash_t hash = llvm::xxh3_128bits(
      {reinterpret_cast<const uint8_t *>(text.data()), text.size()});
  return llvm::utohexstr(hash.high64, /*LowerCase=*/true, /*Width=*/16) +
         llvm::utohexstr(hash.low64, /*LowerCase=*/true, /*Width=*/16);
}

bool isEqual(KernelOp lhs, KernelOp rhs) {
  return lhs.getTargetAttr() == rhs.getTargetAttr() &&
         lhs.getSymbolsAttr() == rhs.getSymbolsAttr() &&
         OperationEquivalence::isRegionEquivalentTo(
             &lhs.getBody(), &rhs.getBody(),
             OperationEquivalence::IgnoreLocations);
}

} // namespace tcc::exec
