//===- tcc-opt: runs single passes; the driver of lit tests ---------------===//

#include "compiler/pipeline/Register.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  tcc::registerAllTccDialects(registry);
  tcc::registerAllTccPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "tcc's pass driver\n", registry));
}
