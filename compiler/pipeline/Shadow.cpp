#include "compiler/pipeline/Shadow.h"

#include "compiler/pipeline/Budget.h"
#include "dialects/graph/GraphOps.h"
#include "dialects/graph/NodeNames.h"
#include "dialects/graph/Variables.h"
#include "dialects/graph/evaluate/Evaluator.h"
#include "runtime/package/Names.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include <cmath>
#include <random>

using namespace mlir;
using namespace tcc;
using namespace tcc::graph;

/// A training step of more is not for the evaluator: some minutes.
static constexpr EvaluationLimits kLimits = {int64_t(4) << 30, int64_t(1)
                                                                   << 34};

static bool isNarrow(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor &&
         (tensor.getElementType().isBF16() || tensor.getElementType().isF16());
}

static Type widenType(Type type) {
  if (!isNarrow(type))
    return type;
  return withElementType(cast<RankedTensorType>(type),
                         Float32Type::get(type.getContext()));
}

static HostTensor widenTensor(HostTensor tensor) {
  tensor.type = cast<RankedTensorType>(widenType(tensor.type));
  return tensor;
}

namespace {

class ShadowWalk {
public:
  ShadowWalk(ModuleOp module, const WeightStore &weights);

  llvm::Expected<std::vector<ShadowRow>> walk(func::FuncOp function);

private:
  using Tensors = Evaluator::Tensors;
  struct Pair {
    HostTensor own, shadow;
  };

  Evaluator makeEvaluator() const;
  llvm::Error makeArguments(func::FuncOp function);
  llvm::Error readVariables();
  HostTensor makeRandom(func::FuncOp function, BlockArgument argument);
  llvm::Error visit(Operation *op);
  llvm::Expected<Tensors> evaluateShadow(Operation *op, const Tensors &own);
  double measure(ValueRange tensors) const;

  ModuleOp module;
  const WeightStore &weights;
  llvm::SmallVector<int64_t> symbols;
  llvm::StringMap<HostTensor> variables;
  llvm::DenseMap<Value, Pair> values;
  std::vector<ShadowRow> rows;
  std::mt19937_64 random{0};
};

} // namespace

/// Symbols are small.
ShadowWalk::ShadowWalk(ModuleOp module, const WeightStore &weights)
    : module(module), weights(weights) {
  constexpr int64_t kSmall = 4;
  for (SymbolAttr symbol : getSymbols(module))
    symbols.push_back(
        std::clamp(kSmall, int64_t(symbol.getMin()), int64_t(symbol.getMax())));
}

Evaluator ShadowWalk::makeEvaluator() const {
  auto read = [this](StringRef name,
                     RankedTensorType type) -> llvm::Expected<HostTensor> {
    const Weight *weight = weights.find(name);
    if (!weight || weight->bytes.empty())
      return llvm::createStringError("the model's weights are not there");
    return readBytes(type, weight->bytes);
  };
  return Evaluator(symbols, read, kLimits);
}

// --- Arguments ---------------------------------------------------------------

llvm::Error ShadowWalk::readVariables() {
  auto init = module.lookupSymbol<func::FuncOp>(
      format::nameOf(format::EntryKind::init));
  if (!init)
    return llvm::Error::success();
  auto first = makeEvaluator().evaluate(init, {});
  if (!first)
    return first.takeError();
  for (auto [i, tensor] : llvm::enumerate(*first))
    if (auto name = init.getResultAttrOfType<StringAttr>(
            i, GraphDialect::kVariableAttr))
      variables[name.getValue()] = std::move(tensor);
  return llvm::Error::success();
}

/// How many values an index has that is read from `argument`; 2 if none is.
static int64_t countIndices(func::FuncOp function, BlockArgument argument) {
  if (auto range = function.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(),
                                                        "graph.index_range"))
    return cast<IntegerAttr>(range[1]).getInt() + 1;
  int64_t least = 2;
  for (Operation *user : argument.getUsers()) {
    auto axis = user->getAttrOfType<IntegerAttr>("axis");
    auto from = dyn_cast<RankedTensorType>(user->getOperand(0).getType());
    if (user->hasTrait<OpTrait::ReadsIndices>() && axis && from &&
        !from.isDynamicDim(axis.getInt()))
      least = std::max(least, from.getDimSize(axis.getInt()));
  }
  return least;
}

HostTensor ShadowWalk::makeRandom(func::FuncOp function,
                                  BlockArgument argument) {
  SmallVector<int64_t> shape;
  for (AffineExpr extent : getExtents(argument))
    shape.push_back(evaluate(extent, symbols));
  Type element = getElementTypeOrSelf(argument.getType());
  HostTensor tensor{RankedTensorType::get(shape, element), {}};
  int64_t count = countIndices(function, argument);
  for (int64_t i = 0; i < tensor.type.getNumElements(); ++i) {
    Scalar value;
    if (tensor.isFloat())
      value.f = double(random() >> 40) * 0x1p-24;
    else
      value.i = element.isInteger(1) ? 1 : int64_t(random() % uint64_t(count));
    tensor.elements.push_back(roundTo(element, value));
  }
  return tensor;
}

/// A slot that @init leaves out is zero.
static bool isSlot(ModuleOp module, StringAttr variable) {
  SmallVector<VariableAttr> variables = getVariables(module);
  size_t index = findVariable(variables, variable);
  return index < variables.size() &&
         variables[index].getKind() == VariableKind::slot;
}

static HostTensor makeZeros(BlockArgument argument) {
  auto type = cast<RankedTensorType>(argument.getType());
  return {type, std::vector<Scalar>(type.getNumElements(), Scalar{.i = 0})};
}

llvm::Error ShadowWalk::makeArguments(func::FuncOp function) {
  if (llvm::Error error = readVariables())
    return error;
  for (BlockArgument argument : function.getArguments()) {
    auto name = function.getArgAttrOfType<StringAttr>(
        argument.getArgNumber(), GraphDialect::kVariableAttr);
    HostTensor tensor =
        name && variables.count(name.getValue()) ? variables[name.getValue()]
        : name && isSlot(module, name)           ? makeZeros(argument)
                                       : makeRandom(function, argument);
    values[argument] = {tensor, widenTensor(tensor)};
  }
  return llvm::Error::success();
}

// --- Ops ---------------------------------------------------------------------

/// What an op without operands gives was stored: the shadow has it, too.
llvm::Expected<Evaluator::Tensors>
ShadowWalk::evaluateShadow(Operation *op, const Tensors &own) {
  Tensors results;
  if (op->getNumOperands() == 0) {
    for (const HostTensor &tensor : own)
      results.push_back(widenTensor(tensor));
    return results;
  }
  Operation *clone = op->clone();
  for (Value result : clone->getResults())
    result.setType(widenType(result.getType()));
  Tensors operands;
  for (Value operand : op->getOperands())
    operands.push_back(values[operand].shadow);
  auto evaluated = makeEvaluator().evaluate(clone, operands);
  clone->dropAllReferences();
  clone->destroy();
  return evaluated;
}

/// The largest distance of the tensors from their shadows, root mean squares:
/// as a part of the shadow's.
double ShadowWalk::measure(ValueRange tensors) const {
  double worst = 0;
  for (Value value : tensors) {
    auto found = values.find(value);
    if (found == values.end() || !found->second.own.isFloat())
      continue;
    const auto &[own, shadow] = found->second;
    double distance = 0, scale = 0;
    for (auto [x, y] : llvm::zip_equal(own.elements, shadow.elements)) {
      if (!std::isfinite(x.f) || !std::isfinite(y.f))
        continue;
      distance += (x.f - y.f) * (x.f - y.f);
      scale += y.f * y.f;
    }
    if (scale > 0)
      worst = std::max(worst, std::sqrt(distance / scale));
  }
  return worst;
}

static std::string describeOp(Operation *op) {
  std::string name = op->getName().stripDialect().str();
  if (isa<CastOp>(op) && isNarrow(op->getResult(0).getType()))
    name += " to " + std::string(getElementTypeOrSelf(op->getResult(0)).isBF16()
                                     ? "bf16"
                                     : "f16");
  return name;
}

llvm::Error ShadowWalk::visit(Operation *op) {
  if (op->getNumRegions() > 0)
    return llvm::createStringError("loops and branches are not followed");
  Tensors operands;
  for (Value operand : op->getOperands())
    operands.push_back(values[operand].own);
  auto own = makeEvaluator().evaluate(op, operands);
  if (!own)
    return own.takeError();
  auto shadow = evaluateShadow(op, *own);
  if (!shadow)
    return shadow.takeError();
  for (auto [i, result] : llvm::enumerate(op->getResults()))
    values[result] = {std::move((*own)[i]), std::move((*shadow)[i])};
  double before = measure(op->getOperands()), after = measure(op->getResults());
  // Moves keep what elements are.
  bool isMove =
      !isa<CastOp>(op) && isa<PrecisionOpInterface>(op) &&
      cast<PrecisionOpInterface>(op).getPrecision() == graph::Precision::follow;
  if (!isMove && (before > 0 || after > 0) && before != after)
    rows.push_back({getNodeName(op), describeOp(op), before, after});
  return llvm::Error::success();
}

llvm::Expected<std::vector<ShadowRow>> ShadowWalk::walk(func::FuncOp function) {
  if (llvm::Error error = makeArguments(function))
    return std::move(error);
  llvm::DenseMap<Value, int64_t> readers;
  Block &body = function.getBody().front();
  for (Operation &op : body)
    for (Value operand : op.getOperands())
      ++readers[operand];
  for (Operation &op : body.without_terminator()) {
    if (llvm::Error error = visit(&op))
      return std::move(error);
    for (Value operand : op.getOperands())
      if (--readers[operand] == 0)
        values.erase(operand);
  }
  return std::move(rows);
}

void tcc::reportShadow(ModuleOp module, const WeightStore &weights,
                       const Target &target, const PrecisionRules &precision,
                       CompileReport &report) {
  if (precision.type != tcc::Precision::BF16 &&
      precision.type != tcc::Precision::F16) {
    report.shadowNote = "nothing is stored in less than f32";
    return;
  }
  OwningOpRef<ModuleOp> copy = module.clone();
  PassManager pm(module.getContext());
  addArithmetic(pm, target, precision);
  if (failed(pm.run(*copy)))
    return; // the phase itself fails, too, and says why
  auto find = [&](format::EntryKind kind) {
    return copy->lookupSymbol<func::FuncOp>(format::nameOf(kind));
  };
  func::FuncOp function = find(getStep(*copy));
  if (!function)
    function = find(format::EntryKind::main);
  auto rows = ShadowWalk(*copy, weights).walk(function);
  if (rows)
    report.shadow = std::move(*rows);
  else
    report.shadowNote = "not compared: " + llvm::toString(rows.takeError());
}
