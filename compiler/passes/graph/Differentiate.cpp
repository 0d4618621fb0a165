//===- Differentiate.cpp - Gradients as further results -------------------===//
#include "compiler/passes/graph/Differentiate.h"
#include "compiler/passes/graph/Passes.h"
#include "dialects/graph/Variants.h"
#include "dialects/graph/ops/TensorEmitter.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc {

#define GEN_PASS_DEF_DIFFERENTIATEPASS
#include "compiler/passes/graph/Passes.h.inc"

namespace {

struct DifferentiatePass : impl::DifferentiatePassBase<DifferentiatePass> {
  using impl::DifferentiatePassBase<DifferentiatePass>::DifferentiatePassBase;
  void runOnOperation() override;
};

} // namespace

static Value findResult(func::FuncOp main, StringRef name) {
  Operation *terminator = main.getBody().front().getTerminator();
  auto attr = StringAttr::get(main.getContext(), name);
  for (unsigned i = 0; i < main.getNumResults(); ++i)
    if (main.getResultAttr(i, GraphDialect::kNameAttr) == attr)
      return terminator->getOperand(i);
  return nullptr;
}

static Value findArgument(func::FuncOp main, StringRef name) {
  auto attr = StringAttr::get(main.getContext(), name);
  for (BlockArgument argument : main.getArguments())
    if (main.getArgAttr(argument.getArgNumber(), GraphDialect::kNameAttr) ==
        attr)
      return argument;
  return nullptr;
}

static void checkFloats(Value value, StringRef what, StringRef name,
                        std::vector<std::string> &problems) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (!value)
    stream << "there is no " << what << " '" << name << "'";
  else if (Type type = getElementTypeOrSelf(value); !isa<FloatType>(type))
    stream << what << " '" << name << "' holds " << type << ", expected floats";
  if (!text.empty())
    problems.push_back(text);
}

std::vector<std::string> findGradientProblems(ModuleOp module, StringRef of,
                                              ArrayRef<std::string> wrt) {
  SmallVector<func::FuncOp> mains = getMains(module);
  if (mains.empty() || mains[0].isExternal())
    return {"expected a function @main with a body"};
  func::FuncOp main = mains[0]; // the others have the same inputs and outputs
  std::vector<std::string> problems;
  checkFloats(findResult(main, of), "output", of, problems);
  for (const std::string &name : wrt)
    checkFloats(findArgument(main, name), "input", name, problems);
  return problems;
}

/// Appends a result named after what it is the gradient of.
static void addResult(func::FuncOp main, Value gradient, const Twine &name) {
  Builder builder(main.getContext());
  auto attrs = builder.getDictionaryAttr(builder.getNamedAttr(
      GraphDialect::kNameAttr, builder.getStringAttr(name)));
  main.insertResult(main.getNumResults(), gradient.getType(), attrs);
  Operation *terminator = main.getBody().front().getTerminator();
  terminator->insertOperands(terminator->getNumOperands(), gradient);
}

static LogicalResult addGradients(func::FuncOp main, StringRef of,
                                  ArrayRef<std::string> wrt) {
  Operation *terminator = main.getBody().front().getTerminator();
  OpBuilder builder(terminator);
  TensorEmitter emitter(builder, terminator->getLoc());
  SmallVector<Value> inputs, gradients;
  for (const std::string &name : wrt)
    inputs.push_back(findArgument(main, name));
  Value result = findResult(main, of);
  if (failed(differentiate(builder, result, emitter.splat(result, 1.0), inputs,
                           gradients)))
    return failure();
  for (auto [gradient, input, name] : llvm::zip_equal(gradients, inputs, wrt)) {
    if (!gradient)
      gradient = emitter.splat(input, 0.0);
    addResult(main, gradient, "d(" + of + ")/d(" + name + ")");
  }
  return success();
}

void DifferentiatePass::runOnOperation() {
  ModuleOp module = getOperation();
  std::vector<std::string> problems = findGradientProblems(module, of, wrt);
  for (const std::string &problem : problems)
    module.emitError(problem);
  if (!problems.empty())
    return signalPassFailure();
  for (func::FuncOp main : getMains(module))
    if (failed(addGradients(main, of, wrt)))
      return signalPassFailure();
}

} // namespace tcc
