//===- MainFunction.h - The function of a model -----------------*- C++ -*-===//
#ifndef TCC_FRONTENDS_MAINFUNCTION_H
#define TCC_FRONTENDS_MAINFUNCTION_H

#include "frontends/Frontend.h"
#include "frontends/Signature.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tcc {

/// Makes the module of a model and its @main, as Frontend.h describes them.
class MainFunction {
public:
  /// Creates both; `builder` then inserts into the function.
  MainFunction(mlir::OpBuilder &builder, llvm::StringRef name,
               llvm::ArrayRef<ModelInput> inputs);

  mlir::func::FuncOp getFunction() { return function; }
  mlir::Block *getEntry() { return &function.getBody().front(); }
  mlir::Value getInput(unsigned i) { return function.getArgument(i); }

  /// Ends the function with the given results.
  void setResults(llvm::ArrayRef<std::string> names,
                  llvm::ArrayRef<mlir::Value> values);
  /// Joins outputs and inputs.
  void setStates(llvm::ArrayRef<StatePair> states, Problems &problems);
  /// The finished module; reports bounds of sizes that there are not, and notes
  /// those of sizes that a run computes.
  mlir::OwningOpRef<mlir::ModuleOp> take(const Sizes &sizes, Problems &problems,
                                         std::vector<std::string> &notes);

private:
  std::optional<int64_t> find(llvm::ArrayRef<std::string> names,
                              const std::string &name, llvm::StringRef kind,
                              Problems &problems);

  mlir::OpBuilder &builder;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp function;
  std::vector<std::string> inputNames, outputNames;
};

/// The dense value of `input`, which is fixed.
mlir::DenseElementsAttr getFixedValue(const ModelInput &input);

} // namespace tcc

#endif // TCC_FRONTENDS_MAINFUNCTION_H
