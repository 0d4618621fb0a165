#include "compiler/passes/graph/fusion/Epilogue.h"

#include "compiler/passes/graph/fusion/Region.h"
#include "compiler/passes/graph/match/Matchers.h"
#include "dialects/graph/Strides.h"
#include "runtime/package/LibraryRules.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::fusion {
namespace {

class EpilogueMatcher {
public:
  EpilogueMatcher(Value product, function_ref<bool(Value)> isInput)
      : product(product), isInput(isInput) {}
  std::optional<Epilogue> match(Value result);

private:
  Value takeActivation(Operation *op);
  bool addTerm(Value value);
  bool addAddend(Value value);
  Value stripViews(Value value) const;

  Value product;
  function_ref<bool(Value)> isInput;
  Epilogue epilogue;
  bool isMet = false;
};

} // namespace

std::optional<format::StepKind> getFunction(Operation *op) {
  if (!op || op->getNumOperands() == 0)
    return std::nullopt;
  StringRef name = op->getName().stripDialect();
  for (format::StepKind kind : format::EnumValuesStepKind())
    if (runtime::traitsOf(kind).isFunction && name == format::nameOf(kind))
      return kind;
  return std::nullopt;
}

bool isActivation(Operation *op) { return getFunction(op).has_value(); }

/// What libraries take `product` for, by the side that windows slide over.
static format::WorkKind getWorkKind(Operation *op) {
  auto product = dyn_cast<ProductOpInterface>(op);
  if (product && product.getProduct().lhs.padded > 0)
    return format::WorkKind::convolution;
  return product && product.getProduct().rhs.padded > 0
             ? format::WorkKind::filter_gradient
             : format::WorkKind::product;
}

bool isActivationOf(Operation *op, Operation *product) {
  std::optional<format::StepKind> function = getFunction(op);
  return function && runtime::hasStep(getWorkKind(product), *function);
}

/// The first operand of a function of two is that of the library's step.
Value getActivated(Operation *activation) {
  return activation->getOperands().back();
}

/// What `value` is but for its shape and the width of its elements. Widening is
/// free to whoever reads an input.
Value EpilogueMatcher::stripViews(Value value) const {
  for (;;) {
    Operation *op = value.getDefiningOp();
    bool isStripped =
        isInput(value) ? isWidening(op) : isView(op) || isFloatCast(op);
    if (!isStripped)
      return value;
    value = op->getOperand(0);
  }
}

/// A sum of sums may have any number of terms.
bool EpilogueMatcher::addAddend(Value value) {
  if (epilogue.addends.size() == kMaxAddends)
    return false;
  epilogue.addends.push_back(value);
  return true;
}

/// Adds one term of the sum; false if it has no place in an epilogue.
bool EpilogueMatcher::addTerm(Value value) {
  value = stripViews(value);
  if (value == product) {
    bool isFirst = !isMet;
    isMet = true;
    return isFirst;
  }
  if (isInput(value))
    return addAddend(value);
  if (auto add = value.getDefiningOp<AddOp>())
    return addTerm(add.getLhs()) && addTerm(add.getRhs());
  if (auto mul = value.getDefiningOp<MulOp>())
    for (auto [x, factor] : {std::pair(mul.getLhs(), mul.getRhs()),
                             std::pair(mul.getRhs(), mul.getLhs())})
      if (std::optional<double> splat = tcc::getSplat(factor);
          splat && stripViews(x) == product) {
        epilogue.scale = *splat;
        return addTerm(x);
      }
  return addAddend(value);
}

Value EpilogueMatcher::takeActivation(Operation *op) {
  epilogue.activation = op;
  if (op->getNumOperands() > 1)
    epilogue.other = stripViews(op->getOperand(0));
  return getActivated(op);
}

std::optional<Epilogue> EpilogueMatcher::match(Value result) {
  result = stripViews(result);
  if (!isInput(result) && isActivation(result.getDefiningOp()))
    result = takeActivation(result.getDefiningOp());
  if (!addTerm(result) || !isMet)
    return std::nullopt;
  return epilogue;
}

bool isActivated(Value value, const Epilogue &epilogue) {
  auto strip = [](Value value) {
    for (Operation *op = value.getDefiningOp(); isView(op) || isFloatCast(op);
         op = value.getDefiningOp())
      value = op->getOperand(0);
    return value;
  };
  return epilogue.activation &&
         strip(value) == strip(getActivated(epilogue.activation));
}

std::optional<Epilogue> matchEpilogue(Value result, Value product,
                                      function_ref<bool(Value)> isInput) {
  return EpilogueMatcher(product, isInput).match(result);
}

} // namespace tcc::fusion
