#include "compiler/pipeline/Register.h"

#include "compiler/codegen/Passes.h"
#include "compiler/codegen/cuda/DeviceCode.h"
#include "compiler/lowering/Passes.h"
#include "compiler/passes/exec/Passes.h"
#include "compiler/passes/graph/Passes.h"
#include "compiler/pipeline/Phases.h"
#include "dialects/exec/ExecDialect.h"
#include "dialects/graph/GraphDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/Passes.h"

namespace tcc {

void registerAllTccDialects(mlir::DialectRegistry &registry) {
  registry.insert<graph::GraphDialect, exec::ExecDialect,
                  mlir::arith::ArithDialect, mlir::func::FuncDialect,
                  mlir::math::MathDialect, mlir::scf::SCFDialect>();
  cuda::registerDeviceCode(registry);
}

void registerAllTccPasses() {
  // Tests clean up with these.
  mlir::registerCanonicalizer();
  mlir::registerCSE();
  registerTccGraphPasses();
  registerTccLoweringPasses();
  registerTccExecPasses();
  registerTccCodegenPasses();
  registerPhases();
}

} // namespace tcc
