#include "dialects/exec/KernelHash.h"

#include "mlir/IR/OperationSupport.h"

using namespace mlir;

namespace tcc::exec {

llvm::hash_code hashOf(KernelOp kernel) {
  llvm::hash_code hash(0);
  kernel.getBody().walk([&](Operation *op) {
    hash =
        llvm::hash_combine(hash, OperationEquivalence::computeHash(
                                     op, OperationEquivalence::ignoreHashValue,
                                     OperationEquivalence::ignoreHashValue,
                                     OperationEquivalence::IgnoreLocations));
  });
  return hash;
}

} // namespace tcc::exec
