#include "compiler/codegen/region/ElementEmitter.h"
#include "dialects/graph/ops/Scalar.h"
#include "runtime/base/Alignment.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::codegen {

// --- Index arithmetic

Value emitIndex(OpBuilder &b, Location loc, int64_t value) {
  return b.create<arith::ConstantIndexOp>(loc, value);
}

static bool isConstant(Value x, int64_t value) {
  auto op = x.getDefiningOp<arith::ConstantIndexOp>();
  return op && op.value() == value;
}

Value emitAdd(OpBuilder &b, Location loc, Value x, Value y) {
  if (isConstant(x, 0))
    return y;
  return b.createOrFold<arith::AddIOp>(loc, x, y);
}

Value emitSub(OpBuilder &b, Location loc, Value x, Value y) {
  return b.createOrFold<arith::SubIOp>(loc, x, y);
}

Value emitMul(OpBuilder &b, Location loc, Value x, Value y) {
  if (isConstant(x, 1))
    return y;
  return b.createOrFold<arith::MulIOp>(loc, x, y);
}

Value emitMin(OpBuilder &b, Location loc, Value x, Value y) {
  return b.createOrFold<arith::MinSIOp>(loc, x, y);
}

SmallVector<Value> emitDelinearize(OpBuilder &b, Location loc, Value position,
                                   ValueRange sizes) {
  SmallVector<Value> indices(sizes.size());
  for (size_t i = sizes.size(); i-- > 0;) {
    if (i == 0) {
      indices[i] = position;
      break;
    }
    indices[i] = b.createOrFold<arith::RemUIOp>(loc, position, sizes[i]);
    position = b.createOrFold<arith::DivUIOp>(loc, position, sizes[i]);
  }
  return indices;
}

void emitLoop(OpBuilder &b, Location loc, Value from, Value to, int64_t step,
              LoopBody body) {
  // The body is filled once the loop stands in its block: hoisting looks there.
  auto loop = b.create<scf::ForOp>(loc, from, to, emitIndex(b, loc, step));
  OpBuilder inner(loop.getBody()->getTerminator());
  body(inner, loop.getInductionVar());
}

// --- Numbers of indices

ElementEmitter::ElementEmitter(Operation *anchor,
                               ArrayRef<unsigned> usedSymbols,
                               SizeSource symbolValue, Buffer fault)
    : anchor(anchor), outermost(anchor->getBlock()), usedSymbols(usedSymbols),
      symbolValue(std::move(symbolValue)), fault(fault) {}

void ElementEmitter::bindInputs(FusedOp region, ArrayRef<Buffer> inputs) {
  for (auto [input, buffer] :
       llvm::zip_equal(region.getBody().getArguments(), inputs))
    bind(input, buffer);
}

static unsigned getDepth(Block *block) {
  unsigned depth = 0;
  while (Operation *parent = block->getParentOp()) {
    ++depth;
    block = parent->getBlock();
    if (!block)
      break;
  }
  return depth;
}

static Block *getInner(Block *a, Block *b) {
  return getDepth(a) >= getDepth(b) ? a : b;
}

unsigned ElementEmitter::addNumber(Block *root) {
  roots.push_back(root);
  return roots.size() - 1;
}

/// Index arithmetic that may be repeated anywhere.
static Operation *getArithmetic(Value index) {
  Operation *op = index.getDefiningOp();
  return op && op->getNumRegions() == 0 && isPure(op) ? op : nullptr;
}

unsigned ElementEmitter::number(Value index) {
  auto [it, isNew] = numbers.try_emplace(index, 0);
  if (!isNew)
    return it->second;
  Operation *op = getArithmetic(index);
  if (!op)
    return numbers[index] = addNumber(index.getParentBlock());
  SmallVector<unsigned, 4> operands;
  Block *root = anchor->getBlock();
  for (Value operand : op->getOperands()) {
    operands.push_back(number(operand));
    root = getInner(root, roots[operands.back()]);
  }
  Expression expression(op->getName().getAsOpaquePointer(),
                        op->getAttrDictionary().getAsOpaquePointer(), operands);
  auto [known, isNewExpression] = expressions.try_emplace(expression, 0);
  if (isNewExpression)
    known->second = addNumber(root);
  return numbers[index] = known->second;
}

ElementEmitter::Key ElementEmitter::getKey(Value tensor, ValueRange indices) {
  Key key(tensor.getAsOpaquePointer(), {});
  for (Value index : indices)
    key.second.push_back(number(index));
  return key;
}

static bool isInside(Block *block, Block *outer) {
  for (; block; block = block->getParentOp()->getBlock()) {
    if (block == outer)
      return true;
    if (!block->getParentOp())
      return false;
  }
  return false;
}

Value ElementEmitter::lookup(const Key &key, Block *block) const {
  auto it = elements.find(key);
  if (it == elements.end())
    return nullptr;
  for (Value known : it->second)
    if (isInside(block, known.getParentBlock()))
      return known;
  return nullptr;
}

/// A builder outside of the loops that the element does not depend on. It never
/// leaves a branch, where indices may be out of range otherwise.
OpBuilder ElementEmitter::hoist(OpBuilder &b, const Key &key) {
  Block *root = outermost;
  for (unsigned index : key.second)
    root = getInner(root, roots[index]);
  OpBuilder result = b;
  while (result.getInsertionBlock() != root) {
    auto loop = dyn_cast<scf::ForOp>(result.getInsertionBlock()->getParentOp());
    if (!loop)
      break;
    result.setInsertionPoint(loop);
  }
  return result;
}

/// `index`, computed again where it is not visible.
Value ElementEmitter::materialize(OpBuilder &b, Value index) {
  if (isInside(b.getInsertionBlock(), index.getParentBlock()))
    return index;
  Operation *op = getArithmetic(index);
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(materialize(b, operand));
  Operation *copy = b.clone(*op);
  copy->setOperands(operands);
  return copy->getResult(cast<OpResult>(index).getResultNumber());
}

// --- Elements

void ElementEmitter::define(Value tensor, ValueRange indices, Value scalar) {
  // The newest definition hides those that came before.
  auto &known = elements[getKey(tensor, indices)];
  known.insert(known.begin(), scalar);
}

Value ElementEmitter::element(OpBuilder &b, Location loc, Value tensor,
                              ValueRange indices) {
  Key key = getKey(tensor, indices);
  OpBuilder outer = hoist(b, key);
  if (Value known = lookup(key, b.getInsertionBlock()))
    return known;
  SmallVector<Value> visible;
  for (Value index : indices)
    visible.push_back(materialize(outer, index));
  Value scalar = compute(outer, loc, tensor, visible);
  elements[key].push_back(scalar);
  return scalar;
}

Value ElementEmitter::compute(OpBuilder &b, Location loc, Value tensor,
                              ValueRange indices) {
  if (Buffer buffer = buffers.lookup(tensor))
    return buffer.load(b, loc, position(b, loc, tensor, indices));
  return computeByOp(b, loc, tensor, indices);
}

Value ElementEmitter::computeByOp(OpBuilder &b, Location loc, Value tensor,
                                  ValueRange indices) {
  Operation *op = tensor.getDefiningOp();
  Type elementType = getElementTypeOrSelf(tensor);
  if (auto pointwise = dyn_cast_if_present<PointwiseOpInterface>(op)) {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(element(b, loc, operand, indices));
    Value scalar = pointwise.emitScalar(b, loc, operands);
    return round(b, loc, scalar, elementType);
  }
  if (auto constant = dyn_cast_if_present<ConstantOp>(op))
    return emitConstant(b, loc, constant, indices);
  if (auto mover = dyn_cast_if_present<ElementOpInterface>(op)) {
    Value scalar = mover.emitElement(b, loc, indices, *this);
    // Moved elements are rounded; those made from indices are not.
    return op->getNumOperands() ? scalar : round(b, loc, scalar, elementType);
  }
  failed = true;
  if (op)
    op->emitOpError("is read at other positions than its kernel's loops");
  else
    emitError(loc, "a kernel reads a value that it does not get");
  return ScalarEmitter(b, loc).constant(getScalarType(elementType), 0);
}

Value ElementEmitter::round(OpBuilder &b, Location loc, Value x,
                            Type elementType) {
  if (rounding == Bf16Rounding::integers || !elementType.isBF16())
    return emitRounding(b, loc, x, elementType);
  if (rounding == Bf16Rounding::llvm) {
    Value narrow = b.create<LLVM::FPTruncOp>(loc, elementType, x);
    return b.create<LLVM::FPExtOp>(loc, x.getType(), narrow);
  }
  Value narrow = b.create<arith::TruncFOp>(loc, elementType, x);
  return b.create<arith::ExtFOp>(loc, x.getType(), narrow);
}

void ElementEmitter::storeElement(OpBuilder &b, Location loc, Value tensor,
                                  ValueRange indices, const Buffer &buffer) {
  Value scalar = element(b, loc, tensor, indices);
  buffer.store(b, loc, scalar, position(b, loc, tensor, indices));
}

/// What the indices of two neighbouring axes were split from, by the extent of
/// the inner one: with it LLVM sees that they walk along memory.
static Value matchSplit(Value outer, Value inner, AffineExpr extent) {
  auto quotient = outer.getDefiningOp<arith::DivUIOp>();
  auto rest = inner.getDefiningOp<arith::RemUIOp>();
  std::optional<int64_t> known = graph::getConstant(extent);
  if (!quotient || !rest || quotient->getOperands() != rest->getOperands() ||
      !known || !isConstant(rest.getRhs(), *known))
    return {};
  return rest.getLhs();
}

Value ElementEmitter::position(OpBuilder &b, Location loc, Value tensor,
                               ValueRange indices) {
  Extents extents = getExtents(tensor);
  Value linear;
  for (size_t i = 0; i < indices.size(); ++i) {
    Value index = indices[i];
    AffineExpr extent = extents[i];
    Value whole = i + 1 < indices.size()
                      ? matchSplit(index, indices[i + 1], extents[i + 1])
                      : Value();
    if (whole) {
      index = whole;
      extent = extent * extents[++i];
    }
    if (linear)
      index =
          emitAdd(b, loc, emitMul(b, loc, linear, size(b, loc, extent)), index);
    linear = index;
  }
  return linear ? linear : emitIndex(b, loc, 0);
}

Buffer ElementEmitter::allocate(Location loc, Type elementType, int64_t count) {
  OpBuilder b(anchor);
  Type memory = LLVM::LLVMArrayType::get(b.getI8Type(),
                                         count * getStorageBytes(elementType));
  Value one = b.create<LLVM::ConstantOp>(loc, b.getI32Type(), 1);
  Value pointer =
      b.create<LLVM::AllocaOp>(loc, LLVM::LLVMPointerType::get(b.getContext()),
                               memory, one, kTensorAlignment);
  return Buffer(pointer, elementType);
}

// --- Constants

/// The elements as bytes in storage form.
static DenseElementsAttr getStoredElements(DenseElementsAttr value) {
  Type type = value.getElementType();
  MLIRContext *context = type.getContext();
  if (type.isInteger(1))
    return value.mapValues(IntegerType::get(context, 8),
                           [](const APInt &x) { return x.zext(8); });
  if (auto integer = dyn_cast<IntegerType>(type))
    return value.bitcast(IntegerType::get(context, integer.getWidth()));
  if (type.isBF16())
    return value.bitcast(IntegerType::get(context, 16));
  return value;
}

Buffer ElementEmitter::createTable(Location loc, ConstantOp op) {
  auto elements = getStoredElements(cast<DenseElementsAttr>(op.getValue()));
  Operation *module = SymbolTable::getNearestSymbolTable(anchor);
  Block &symbols = module->getRegion(0).front();
  unsigned count = llvm::range_size(symbols.getOps<LLVM::GlobalOp>());
  auto b = OpBuilder::atBlockBegin(&symbols);
  auto type = LLVM::LLVMArrayType::get(elements.getElementType(),
                                       elements.getNumElements());
  auto flat = elements.reshape(RankedTensorType::get(
      elements.getNumElements(), elements.getElementType()));
  auto global = b.create<LLVM::GlobalOp>(
      loc, type, /*isConstant=*/true, LLVM::Linkage::Internal,
      ("table" + Twine(count)).str(), flat, kTensorAlignment);
  b.setInsertionPoint(anchor);
  Value pointer = b.create<LLVM::AddressOfOp>(loc, global);
  return Buffer(pointer, getElementTypeOrSelf(op.getResult()));
}

/// A splat is inlined; other values become a table beside the code.
Value ElementEmitter::emitConstant(OpBuilder &b, Location loc, ConstantOp op,
                                   ValueRange indices) {
  Type elementType = getElementTypeOrSelf(op.getResult());
  ScalarEmitter e(b, loc);
  auto value = cast<DenseElementsAttr>(op.getValue());
  if (!value.isSplat()) {
    Buffer table = createTable(loc, op);
    bind(op.getResult(), table);
    return table.load(b, loc, position(b, loc, op.getResult(), indices));
  }
  Type scalar = getScalarType(elementType);
  if (isa<IntegerType>(elementType))
    return e.integer(scalar, value.getSplatValue<APInt>());
  return e.constant(scalar, value.getSplatValue<APFloat>().convertToDouble());
}

// --- Sizes

Value ElementEmitter::size(OpBuilder &b, Location loc, AffineExpr expression) {
  if (auto constant = getConstant(expression))
    return emitIndex(b, loc, *constant);
  Value &known = knownSizes[expression];
  if (!known) {
    OpBuilder outer(anchor);
    known = emitSize(outer, loc, expression);
  }
  return known;
}

Value ElementEmitter::emitSize(OpBuilder &b, Location loc, AffineExpr e) {
  if (auto constant = getConstant(e))
    return emitIndex(b, loc, *constant);
  if (auto symbol = dyn_cast<AffineSymbolExpr>(e)) {
    auto it = llvm::find(usedSymbols, symbol.getPosition());
    assert(it != usedSymbols.end() && "sizes are those of the region");
    Value value = symbolValue(b, it - usedSymbols.begin());
    return b.create<arith::IndexCastOp>(loc, b.getIndexType(), value);
  }
  auto binary = cast<AffineBinaryOpExpr>(e);
  Value lhs = emitSize(b, loc, binary.getLHS());
  Value rhs = emitSize(b, loc, binary.getRHS());
  switch (binary.getKind()) {
  case AffineExprKind::Add:
    return emitAdd(b, loc, lhs, rhs);
  case AffineExprKind::Mul:
    return emitMul(b, loc, lhs, rhs);
  case AffineExprKind::FloorDiv:
    return b.create<arith::FloorDivSIOp>(loc, lhs, rhs);
  case AffineExprKind::CeilDiv:
    return b.create<arith::CeilDivSIOp>(loc, lhs, rhs);
  case AffineExprKind::Mod: {
    Value quotient = b.create<arith::FloorDivSIOp>(loc, lhs, rhs);
    return emitSub(b, loc, lhs, emitMul(b, loc, quotient, rhs));
  }
  default:
    llvm_unreachable("not a binary affine expression");
  }
}

// --- Indices read from data

Value ElementEmitter::checkedIndex(OpBuilder &b, Location loc, Value index,
                                   Value extent, bool wrapNegative) {
  assert(fault && "a kernel that checks indices has a fault buffer");
  ScalarEmitter e(b, loc);
  Value value = e.emit<arith::IndexCastOp>(b.getIndexType(), index);
  Value zero = emitIndex(b, loc, 0);
  Value inside = value;
  if (wrapNegative) {
    Value isNegative = e.compare(arith::CmpIPredicate::slt, value, zero);
    inside = e.select(isNegative, emitAdd(b, loc, value, extent), value);
  }
  Value isValid = e.compare(arith::CmpIPredicate::ult, inside, extent);
  Value isFault = e.emit<arith::XOrIOp>(isValid, e.constant(b.getI1Type(), 1));
  auto branch = b.create<scf::IfOp>(loc, isFault, /*withElseRegion=*/false);
  OpBuilder inner = branch.getThenBodyBuilder();
  Value one = inner.create<arith::ConstantIntOp>(loc, 1, 64);
  // As it is in the data: `value` may have fewer bits.
  Value wide = index;
  if (wide.getType().isIndex())
    wide = inner.create<arith::IndexCastOp>(loc, inner.getI64Type(), wide);
  else if (!wide.getType().isInteger(64))
    wide = inner.create<arith::ExtSIOp>(loc, inner.getI64Type(), wide);
  fault.store(inner, loc, one, emitIndex(inner, loc, 0));
  fault.store(inner, loc, wide, emitIndex(inner, loc, 1));
  return e.select(isValid, inside, zero);
}

} // namespace tcc::codegen
