#include "frontends/KnownValues.h"

#include "dialects/graph/GraphOps.h"
#include "dialects/graph/evaluate/Evaluator.h"
#include "frontends/Sizes.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tcc {

/// How far back a value is followed to see whether it is constant.
constexpr int kMaxLevels = 256;

int64_t getInteger(Scalar element, Type type) {
  unsigned width = type.getIntOrFloatBitWidth();
  return type.isUnsignedInteger() && width < 64
             ? int64_t(zeroExtend(element.i, width))
             : element.i;
}

std::optional<HostTensor> KnownValues::compute(Value value, int levels) {
  auto type = cast<RankedTensorType>(value.getType());
  Operation *op = value.getDefiningOp();
  if (!op || levels == 0 || op->getNumRegions() != 0 || !type.hasStaticShape())
    return std::nullopt;
  auto accept =
      [](llvm::Expected<HostTensor> tensor) -> std::optional<HostTensor> {
    if (tensor)
      return std::move(*tensor);
    llvm::consumeError(tensor.takeError());
    return std::nullopt;
  };
  if (type.getNumElements() > kMaxContent)
    return std::nullopt;
  if (auto constant = dyn_cast<graph::ConstantOp>(op))
    return accept(readAttribute(constant.getValue()));
  if (auto weight = dyn_cast<graph::WeightOp>(op)) {
    Weight *stored = weights.find(weight.getName());
    if (!stored || int64_t(stored->bytes.size()) != getByteSize(type))
      return std::nullopt;
    return accept(readBytes(type, stored->bytes));
  }
  SmallVector<HostTensor> operands;
  for (Value operand : op->getOperands()) {
    const HostTensor *known = evaluate(operand, levels - 1);
    if (!known)
      return std::nullopt;
    operands.push_back(*known);
  }
  auto results = Evaluator().evaluate(op, operands);
  if (results)
    return (*results)[cast<OpResult>(value).getResultNumber()];
  llvm::consumeError(results.takeError());
  return std::nullopt;
}

const HostTensor *KnownValues::evaluate(Value value, int levels) {
  if (auto known = evaluated.find(value); known != evaluated.end())
    return known->second ? &*known->second : nullptr;
  auto computed = compute(value, levels);
  auto &entry = evaluated[value] = std::move(computed);
  return entry ? &*entry : nullptr;
}

const HostTensor *KnownValues::evaluate(Value value) {
  return evaluate(value, kMaxLevels);
}

void KnownValues::markStructural(Value value) {
  llvm::SetVector<Operation *> ops;
  ops.insert(value.getDefiningOp());
  for (size_t i = 0; i < ops.size(); ++i) {
    if (auto weight = dyn_cast<graph::WeightOp>(ops[i]))
      weights.find(weight.getName())->structural = true;
    for (Value operand : ops[i]->getOperands())
      ops.insert(operand.getDefiningOp());
  }
}

} // namespace tcc
