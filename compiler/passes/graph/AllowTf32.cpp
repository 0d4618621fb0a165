//===- AllowTf32.cpp - Products that libraries may round --------*- C++ -*-===//
#include "compiler/decisions/Decisions.h"
#include "compiler/passes/graph/Passes.h"
#include "dialects/graph/GraphOps.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc {

#define GEN_PASS_DEF_ALLOWTF32PASS
#include "compiler/passes/graph/Passes.h.inc"

namespace {

struct AllowTf32Pass : impl::AllowTf32PassBase<AllowTf32Pass> {
  void runOnOperation() override {
    DecisionLog log(getOperation(), "allow-tf32");
    getOperation().walk([&](PrecisionOpInterface op) {
      if (op.getPrecision() == Precision::narrow &&
          getElementTypeOrSelf(op->getOperand(0)).isF32() && op.allowTf32())
        log.add(op, "tf32", "a library may round what its products read");
    });
  }
};

} // namespace
} // namespace tcc
