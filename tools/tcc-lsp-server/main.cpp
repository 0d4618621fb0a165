//===- tcc-lsp-server: tcc's dialects in editors --------------------------===//

#include "compiler/pipeline/Register.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  tcc::registerAllTccDialects(registry);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
