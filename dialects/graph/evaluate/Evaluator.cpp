#include "dialects/graph/evaluate/Evaluator.h"
#include "dialects/graph/GraphOps.h"
#include "dialects/graph/NodeNames.h"
#include "dialects/graph/evaluate/DirectOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace tcc::graph;
using llvm::Error;
using llvm::Expected;

namespace tcc {

void registerEvaluatorDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, cf::ControlFlowDialect,
                  math::MathDialect, memref::MemRefDialect, scf::SCFDialect>();
}

bool Evaluator::isKnown(AffineExpr size) const {
  bool known = true;
  size.walk([&](AffineExpr part) {
    if (auto symbol = dyn_cast<AffineSymbolExpr>(part))
      known &= symbol.getPosition() < symbols.size() &&
               symbols[symbol.getPosition()].has_value();
  });
  return known;
}

int64_t Evaluator::evaluateSize(AffineExpr size) const {
  SmallVector<int64_t> values;
  for (const std::optional<int64_t> &symbol : symbols)
    values.push_back(symbol.value_or(0));
  return graph::evaluate(size, values);
}

Expected<Evaluator::Tensors> Evaluator::evaluateReadSize(Operation *op) {
  auto read = cast<ReadSizeOp>(op);
  unsigned symbol = read.getDefinedSymbols().front();
  SymbolAttr attr = getSymbols(op->getParentOfType<ModuleOp>())[symbol];
  int64_t value = get(read.getSize()).elements[0].i;
  if (value < attr.getMin() || value > attr.getMax())
    return llvm::createStringError("%s is %lld", read.getWhat().str().c_str(),
                                   static_cast<long long>(value));
  setSymbol(symbol, value);
  return Tensors();
}

void Evaluator::setSymbol(unsigned symbol, int64_t value) {
  if (symbols.size() <= symbol)
    symbols.resize(symbol + 1);
  symbols[symbol] = value;
}

void Evaluator::setSizes(ArrayRef<unsigned> defined, TypeRange types,
                         ArrayRef<HostTensor> tensors) {
  for (auto [type, tensor] : llvm::zip(types, tensors))
    for (auto [extent, value] : llvm::zip_equal(
             getExtents(cast<RankedTensorType>(type)), tensor.shape())) {
      auto symbol = dyn_cast<AffineSymbolExpr>(extent);
      if (symbol && llvm::is_contained(defined, symbol.getPosition()))
        setSymbol(symbol.getPosition(), value);
    }
}

// --- Values ------------------------------------------------------------------

void Evaluator::define(Value value, HostTensor tensor) {
  values[value] = std::make_shared<const HostTensor>(std::move(tensor));
}

Evaluator::Tensors Evaluator::getAll(ValueRange range) {
  Tensors tensors;
  for (Value value : range)
    tensors.push_back(get(value));
  return tensors;
}

Error Evaluator::spend(int64_t count, int64_t each) {
  uint64_t work = llvm::SaturatingMultiply<uint64_t>(count, each);
  if (work > uint64_t(left.work))
    return llvm::createStringError("needs more work than is allowed");
  left.work -= int64_t(work);
  return Error::success();
}

Expected<RankedTensorType> Evaluator::getType(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape;
  for (AffineExpr extent : getExtents(type)) {
    if (!isKnown(extent))
      return llvm::createStringError("a symbol of its shape has no value");
    shape.push_back(evaluateSize(extent));
    if (shape.back() < 0)
      return llvm::createStringError("an extent is negative");
  }
  return RankedTensorType::get(shape, type.getElementType());
}

Expected<HostTensor> Evaluator::allocate(Value value) {
  auto type = getType(value);
  if (!type)
    return type.takeError();
  uint64_t bytes = sizeof(Scalar);
  for (int64_t extent : type->getShape())
    bytes = llvm::SaturatingMultiply<uint64_t>(bytes, extent);
  if (bytes > uint64_t(left.bytes))
    return llvm::createStringError("needs more memory than is allowed");
  left.bytes -= int64_t(bytes);
  HostTensor tensor{*type, {}};
  tensor.elements.resize(type->getNumElements(), {.i = 0});
  return tensor;
}

// --- Blocks ------------------------------------------------------------------

Expected<Evaluator::Tensors> Evaluator::evaluate(func::FuncOp function,
                                                 ArrayRef<HostTensor> inputs) {
  if (function.isExternal())
    return llvm::createStringError("the function has no body");
  if (inputs.size() != function.getNumArguments())
    return llvm::createStringError("expected %u inputs, found %zu",
                                   function.getNumArguments(), inputs.size());
  return evaluateBlock(function.front(), Tensors(inputs));
}

Expected<Evaluator::Tensors>
Evaluator::evaluate(Operation *op, ArrayRef<HostTensor> operands) {
  for (auto [value, tensor] : llvm::zip_equal(op->getOperands(), operands))
    define(value, tensor);
  return dispatch(op);
}

Expected<Evaluator::Tensors> Evaluator::evaluateBlock(Block &block,
                                                      Tensors arguments) {
  if (depth == kMaxDepth)
    return llvm::createStringError("regions are nested too deeply");
  llvm::SaveAndRestore nested(depth, depth + 1);
  for (auto [argument, tensor] :
       llvm::zip_equal(block.getArguments(), arguments))
    define(argument, std::move(tensor));
  for (Operation &op : block.without_terminator())
    if (Error error = evaluateInto(&op))
      return std::move(error);
  return getAll(block.getTerminator()->getOperands());
}

Error Evaluator::evaluateInto(Operation *op) {
  auto results = dispatch(op);
  if (!results)
    return llvm::createStringError(getNodeName(op) + " (" +
                                   op->getName().getStringRef() +
                                   "): " + toString(results.takeError()));
  if (auto definition = dyn_cast<SizeDefinitionOpInterface>(op))
    setSizes(definition.getDefinedSymbols(), op->getResultTypes(), *results);
  for (auto [value, tensor] : llvm::zip_equal(op->getResults(), *results))
    define(value, std::move(tensor));
  return Error::success();
}

Evaluator::Tensors Evaluator::makeTensors(HostTensor tensor) {
  Tensors tensors;
  tensors.push_back(std::move(tensor));
  return tensors;
}

Expected<Evaluator::Tensors> Evaluator::dispatch(Operation *op) {
  if (auto constant = dyn_cast<ConstantOp>(op)) {
    auto tensor = readAttribute(constant.getValue());
    if (!tensor)
      return tensor.takeError();
    return makeTensors(std::move(*tensor));
  }
  if (auto weight = dyn_cast<WeightOp>(op)) {
    if (!readWeight)
      return llvm::createStringError("weights are not available");
    auto tensor = readWeight(weight.getName(), weight.getResult().getType());
    if (!tensor)
      return tensor.takeError();
    return makeTensors(std::move(*tensor));
  }
  if (isa<ReadSizeOp>(op))
    return evaluateReadSize(op);
  if (auto fused = dyn_cast<FusedOp>(op))
    return evaluateBlock(fused.getBody().front(), getAll(fused.getInputs()));
  if (isa<IfOp>(op))
    return evaluateIf(op);
  if (isa<LoopOp>(op))
    return evaluateLoop(op);
  if (isa<PointwiseOpInterface>(op))
    return evaluatePointwise(op);
  if (isa<ElementOpInterface>(op))
    return evaluateElements(op);
  if (isa<ReductionOpInterface>(op))
    return evaluateReduction(op);
  if (isa<DecomposableOpInterface>(op))
    return evaluateDecomposed(op);
  return evaluateDirect(op);
}

// --- Ops with their own loops ------------------------------------------------

Expected<Evaluator::Tensors> Evaluator::evaluateDirect(Operation *op) {
  SmallVector<const HostTensor *> x;
  for (Value operand : op->getOperands())
    x.push_back(&get(operand));
  Tensors r;
  for (Value result : op->getResults()) {
    auto tensor = allocate(result);
    if (!tensor)
      return tensor.takeError();
    r.push_back(std::move(*tensor));
  }
  if (r.empty())
    return llvm::createStringError("has no results");
  if (Error error = spend(r[0].elements.size(), getWorkPerElement(op, x)))
    return std::move(error);
  using tcc::evaluate;
  Error error =
      llvm::TypeSwitch<Operation *, Error>(op)
          .Case([&](MatmulOp o) {
            evaluate(o, *x[0], *x[1], r[0]);
            return Error::success();
          })
          .Case([&](MatmulSumsOp o) {
            evaluate(o, *x[0], *x[1], r[0], r[1]);
            return Error::success();
          })
          .Case([&](ConvOp o) {
            evaluate(o, *x[0], *x[1], r[0]);
            return Error::success();
          })
          .Case<PoolOp, ArgReduceOp, CumulativeOp, FindOp>([&](auto o) {
            evaluate(o, *x[0], r[0]);
            return Error::success();
          })
          .Case([&](TopKOp o) {
            evaluate(o, *x[0], r[0], r[1]);
            return Error::success();
          })
          .Case([&](ChooseBoxesOp o) {
            evaluate(o, x, r[0]);
            return Error::success();
          })
          .Case<ScatterElementsOp, ScatterNdOp>(
              [&](auto o) { return evaluate(o, *x[0], *x[1], *x[2], r[0]); })
          // There is one rank.
          .Case([&](AllReduceOp) {
            for (auto [sum, tensor] : llvm::zip_equal(r, x))
              sum = *tensor;
            return Error::success();
          })
          .Default([&](Operation *) {
            return llvm::createStringError("cannot be evaluated");
          });
  if (error)
    return std::move(error);
  return r;
}

// --- Control -----------------------------------------------------------------

Expected<Evaluator::Tensors> Evaluator::evaluateIf(Operation *op) {
  auto branch = cast<IfOp>(op);
  bool condition = get(branch.getCondition()).elements[0].i;
  Region &region = condition ? branch.getThenRegion() : branch.getElseRegion();
  return evaluateBlock(region.front(), {});
}

/// Slices stacked along a new leading axis.
static HostTensor stack(ArrayRef<HostTensor> slices, RankedTensorType slice) {
  SmallVector<int64_t> shape = {int64_t(slices.size())};
  llvm::append_range(shape, slice.getShape());
  HostTensor stacked{RankedTensorType::get(shape, slice.getElementType()), {}};
  for (const HostTensor &part : slices)
    llvm::append_range(stacked.elements, part.elements);
  return stacked;
}

Expected<Evaluator::Tensors> Evaluator::evaluateLoop(Operation *op) {
  auto loop = cast<LoopOp>(op);
  Block &body = loop.getBody().front();
  Value trips = loop.getTrips(), condition = loop.getCondition();
  int64_t limit =
      trips ? get(trips).elements[0].i : std::numeric_limits<int64_t>::max();
  bool goesOn = !condition || get(condition).elements[0].i;
  Tensors carried = getAll(loop.getInits());
  size_t scans = loop.getNumResults() - carried.size();
  SmallVector<Tensors> slices(scans);
  auto indexType =
      RankedTensorType::get({}, IntegerType::get(op->getContext(), 64));
  for (int64_t i = 0; goesOn && i < limit; ++i) {
    if (Error error = spend(1, 1))
      return std::move(error);
    Tensors arguments = makeTensors({indexType, {Scalar{.i = i}}});
    llvm::append_range(arguments, carried);
    setSizes(loop.getBodySymbols(), loop.getCarriedTypes(), carried);
    auto yielded = evaluateBlock(body, std::move(arguments));
    if (!yielded)
      return yielded.takeError();
    goesOn = (*yielded)[0].elements[0].i;
    for (size_t j = 0; j < carried.size(); ++j)
      carried[j] = std::move((*yielded)[1 + j]);
    for (size_t j = 0; j < scans; ++j)
      slices[j].push_back(std::move((*yielded)[1 + carried.size() + j]));
  }
  Operation *yield = body.getTerminator();
  for (size_t j = 0; j < scans; ++j) {
    auto slice = getType(yield->getOperand(1 + loop.getInits().size() + j));
    if (!slice)
      return slice.takeError();
    carried.push_back(stack(slices[j], *slice));
  }
  return carried;
}

// --- Constants ---------------------------------------------------------------

/// What ranks do together is a constant on none of them.
static Error checkResults(Operation *op) {
  constexpr uint64_t kMaxBytes = 64 << 10;
  if (op->getNumRegions() != 0 || op->getNumResults() == 0 || !isPure(op))
    return llvm::createStringError("is not evaluated");
  uint64_t bytes = 0;
  for (Type type : op->getResultTypes()) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape())
      return llvm::createStringError("its shape is not known");
    uint64_t size = llvm::divideCeil(tensor.getElementTypeBitWidth(), 8);
    for (int64_t extent : tensor.getShape())
      size = llvm::SaturatingMultiply<uint64_t>(size, extent);
    bytes = llvm::SaturatingAdd(bytes, size);
  }
  if (bytes > kMaxBytes)
    return llvm::createStringError("its results are too large");
  return Error::success();
}

Expected<ConstantValues>
evaluateConstants(Operation *op, ArrayRef<DenseElementsAttr> operands) {
  if (Error error = checkResults(op))
    return std::move(error);
  Evaluator::Tensors tensors;
  for (DenseElementsAttr operand : operands) {
    auto tensor = readAttribute(operand);
    if (!tensor)
      return tensor.takeError();
    tensors.push_back(std::move(*tensor));
  }
  EvaluationLimits limits = {.bytes = 64 << 20, .work = 1 << 24};
  auto results = Evaluator({}, nullptr, limits).evaluate(op, tensors);
  if (!results)
    return results.takeError();
  ConstantValues values;
  for (const HostTensor &result : *results)
    values.push_back(makeAttribute(result));
  return values;
}

Expected<ConstantValues> evaluateConstants(Operation *op) {
  ConstantValues operands;
  for (Value operand : op->getOperands()) {
    auto constant = operand.getDefiningOp<ConstantOp>();
    auto value = constant ? dyn_cast<DenseElementsAttr>(constant.getValue())
                          : DenseElementsAttr();
    if (!value)
      return llvm::createStringError("an operand is not a constant");
    operands.push_back(value);
  }
  return evaluateConstants(op, operands);
}

} // namespace tcc
