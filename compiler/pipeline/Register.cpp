#include "compiler/pipeline/Register.h"

#include "compiler/codegen/Targets.h"
#include "compiler/codegen/passes/Passes.h"
#include "compiler/lowering/Passes.h"
#include "compiler/passes/exec/Passes.h"
#include "compiler/passes/graph/Passes.h"
#include "compiler/pipeline/Phases.h"
#include "compiler/target/Passes.h"
#include "compiler/target/Target.h"
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
  registerAllTargets();
  for (const Target *target : getTargets())
    target->registerDialects(registry);
}

void registerAllTccPasses() {
  // Tests clean up with these.
  mlir::registerCanonicalizer();
  mlir::registerCSE();
  registerTccTargetPasses();
  registerTccGraphPasses();
  registerTccLoweringPasses();
  registerTccExecPasses();
  registerTccCodegenPasses();
  registerPhases();
}

} // namespace tcc
