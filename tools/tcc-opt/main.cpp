//===- tcc-opt: runs single passes; the driver of lit tests ---------------===//

#include "compiler/codegen/null/NullTarget.h"
#include "compiler/pipeline/Register.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  tcc::registerAllTccDialects(registry);
  tcc::registerAllTccPasses();
  tcc::registerTarget(tcc::null::getNullTarget());
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "tcc's pass driver\n", registry));
}
