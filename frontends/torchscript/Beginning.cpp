#include "frontends/torchscript/Beginning.h"

#include "dialects/graph/evaluate/Evaluator.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/package/Names.h"
#include <random>

using namespace mlir;

namespace tcc::torchscript {

using Tensors = SmallVector<HostTensor>;

/// Inputs of `function`: random floats for the first `count`, zeros for others.
static Tensors makeInputs(func::FuncOp function, size_t count) {
  std::mt19937 generator(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  Tensors inputs;
  for (BlockArgument argument : function.getArguments()) {
    unsigned i = argument.getArgNumber();
    HostTensor tensor{cast<RankedTensorType>(argument.getType()), {}};
    for (int64_t n = tensor.type.getNumElements(); n > 0; --n) {
      Scalar element;
      element.i = 0;
      if (tensor.isFloat())
        element.f = i < count ? uniform(generator) : 0;
      tensor.elements.push_back(element);
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

static func::FuncOp findMain(Model &model) {
  return model.module->lookupSymbol<func::FuncOp>(
      format::nameOf(format::EntryKind::main));
}

static llvm::Expected<Tensors> evaluate(Model &model, size_t count) {
  auto function = findMain(model);
  auto readWeight = [&](StringRef name, RankedTensorType type) {
    return readBytes(type, model.weights.find(name)->bytes);
  };
  return Evaluator({}, readWeight)
      .evaluate(function, makeInputs(function, count));
}

static bool isClose(const HostTensor &a, const HostTensor &b) {
  if (a.type != b.type)
    return false;
  for (auto [x, y] : llvm::zip(a.elements, b.elements)) {
    bool isSame = a.isFloat()
                      ? std::abs(x.f - y.f) <= 1e-5 * (1 + std::abs(y.f))
                      : x.i == y.i;
    if (!isSame)
      return false;
  }
  return true;
}

static bool areStatic(Model &model) {
  auto function = findMain(model);
  return llvm::all_of(function.getArgumentTypes(), [](Type type) {
    return cast<RankedTensorType>(type).hasStaticShape();
  });
}

bool beginAlike(Model &first, Model &model, Problems &problems) {
  auto refuse = [&](const std::string &reason) {
    problems.add(ProblemClass::unsupported,
                 "forward changes attributes that do not begin as zeros" +
                     reason);
    return false;
  };
  if (!areStatic(first) || !areStatic(model))
    return refuse("; with symbolic dimensions this is not supported");
  auto function = findMain(first);
  size_t count = function.getNumArguments();
  auto expected = evaluate(first, count);
  auto actual = evaluate(model, count);
  std::string reason;
  for (auto *results : {&expected, &actual})
    if (!*results)
      reason = "; what they do cannot be computed: " +
               llvm::toString(results->takeError());
  if (!reason.empty())
    return refuse(reason);
  bool isAlike = expected->size() == actual->size();
  for (size_t i = 0; isAlike && i < actual->size(); ++i)
    isAlike = isClose((*expected)[i], (*actual)[i]);
  return isAlike || refuse(", nor do what zeros would do");
}

} // namespace tcc::torchscript
