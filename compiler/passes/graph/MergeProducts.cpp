//===- MergeProducts.cpp - One product where several read one tensor ------===//
#include "compiler/decisions/Decisions.h"
#include "compiler/passes/graph/Passes.h"
#include "compiler/passes/graph/match/Matchers.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc {

#define GEN_PASS_DEF_MERGEPRODUCTSPASS
#include "compiler/passes/graph/Passes.h.inc"

namespace {

/// Products of one tensor with parameters that differ in their free extent, and
/// pointwise ops that follow all of them alike.
struct Family {
  unsigned operand; // the parameter's place
  SmallVector<MatmulOp> products;
  /// Each has an op for each product.
  SmallVector<SmallVector<Operation *>> followers;

  /// The free axis of the parameter.
  int64_t getAxis() {
    MatmulOp op = products.front();
    bool isTransposed =
        operand == 0 ? op.getTransposeLhs() : op.getTransposeRhs();
    bool isLast = (operand == 1) != isTransposed;
    return getRank(op->getOperand(operand)) - (isLast ? 1 : 2);
  }
  /// The axis of the results that is the parameter's free one.
  int64_t getResultAxis() {
    return getRank(products.front().getResult()) - (operand == 1 ? 1 : 2);
  }
  /// What others read.
  SmallVector<Value> getEnds() {
    if (!followers.empty())
      return llvm::map_to_vector(followers.back(), [](Operation *op) -> Value {
        return op->getResult(0);
      });
    return llvm::map_to_vector(
        products, [](MatmulOp op) -> Value { return op.getResult(); });
  }
};

} // namespace

// --- Which products

static RankedTensorType withExtent(RankedTensorType type, int64_t axis,
                                   AffineExpr extent) {
  Extents extents = getExtents(type);
  extents[axis] = extent;
  return makeTensorType(extents, type.getElementType());
}

/// A parameter that nothing but products read: others would need it apart.
static bool isMergeable(Value value) {
  return isParameter(value) &&
         llvm::all_of(value.getUsers(),
                      [](Operation *user) { return isa<MatmulOp>(user); });
}

/// The place of the operand that a merged product would have instead.
static std::optional<unsigned> findParameter(MatmulOp op) {
  bool isLeft = isParameter(op.getLhs()), isRight = isParameter(op.getRhs());
  unsigned operand = isRight ? 1 : 0;
  if (isLeft == isRight || op.getPackedRhs() ||
      !isMergeable(op->getOperand(operand)))
    return std::nullopt;
  Family alone{operand, {op}, {}};
  auto extent =
      getConstant(getExtent(op->getOperand(operand), alone.getAxis()));
  return extent && *extent > 1 ? std::optional(operand) : std::nullopt;
}

static std::vector<Family> collectFamilies(ModuleOp module) {
  using Key = std::tuple<Block *, void *, unsigned, const void *, const void *,
                         const void *>;
  llvm::MapVector<Key, Family> families;
  module.walk([&](MatmulOp op) {
    std::optional<unsigned> operand = findParameter(op);
    if (!operand)
      return;
    Family alone{*operand, {op}, {}};
    AffineExpr one = getAffineConstantExpr(1, op.getContext());
    auto rest = withExtent(getTensorType(op->getOperand(*operand)),
                           alone.getAxis(), one);
    auto result = withExtent(getTensorType(op), alone.getResultAxis(), one);
    Key key(op->getBlock(), op->getOperand(1 - *operand).getAsOpaquePointer(),
            *operand, op->getAttrDictionary().getAsOpaquePointer(),
            rest.getAsOpaquePointer(), result.getAsOpaquePointer());
    auto [it, isNew] = families.insert({key, alone});
    if (!isNew)
      it->second.products.push_back(op);
  });
  std::vector<Family> found;
  for (auto &[key, family] : families)
    if (family.products.size() > 1)
      found.push_back(std::move(family));
  return found;
}

// --- What follows them

/// What `operand` repeats to its extents, and which axis of that is `axis` of
/// `operand`; -1 if it has none.
static std::pair<Value, int64_t> getRepeated(Value operand, int64_t axis) {
  auto broadcast = operand.getDefiningOp<BroadcastOp>();
  Value x = broadcast ? broadcast.getX() : operand;
  int64_t own = axis - (getRank(operand) - getRank(x));
  bool isRepeated = own < 0 || getConstant(getExtent(x, own)) == 1;
  return {x, isRepeated ? -1 : own};
}

/// True if operands of the ops that follow products can be one: the same
/// repeated parameter, or parameters along the axis on which they are merged.
static bool areMergeable(ArrayRef<Value> operands, int64_t axis) {
  auto [first, own] = getRepeated(operands.front(), axis);
  if (!isParameter(first))
    return false;
  AffineExpr one = getAffineConstantExpr(1, first.getContext());
  for (Value operand : operands.drop_front()) {
    auto [x, ownAxis] = getRepeated(operand, axis);
    if (ownAxis != own || !isParameter(x))
      return false;
    bool fits = own < 0 ? x == first
                        : withExtent(getTensorType(x), own, one) ==
                              withExtent(getTensorType(first), own, one);
    if (!fits)
      return false;
  }
  return true;
}

/// The operands in one place of all `ops`.
static SmallVector<Value> getOperands(ArrayRef<Operation *> ops, unsigned i) {
  return llvm::map_to_vector(ops,
                             [i](Operation *op) { return op->getOperand(i); });
}

/// The pointwise op that is the only reader of each of `ends`; none if they
/// differ.
static SmallVector<Operation *> findFollowers(ArrayRef<Value> ends,
                                              int64_t axis) {
  SmallVector<Operation *> ops;
  for (Value end : ends) {
    if (!hasOneLocalUse(end) || !isa<PointwiseOpInterface>(*end.user_begin()))
      return {};
    ops.push_back(*end.user_begin());
    Operation *op = ops.back(), *first = ops.front();
    if (op->getName() != first->getName() ||
        op->getAttrDictionary() != first->getAttrDictionary() ||
        getElementTypeOrSelf(op->getResult(0)) !=
            getElementTypeOrSelf(first->getResult(0)) ||
        end.use_begin()->getOperandNumber() !=
            ends.front().use_begin()->getOperandNumber())
      return {};
  }
  unsigned place = ends.front().use_begin()->getOperandNumber();
  for (unsigned i = 0; i < ops.front()->getNumOperands(); ++i)
    if (i != place && !areMergeable(getOperands(ops, i), axis))
      return {};
  return ops;
}

static void addFollowers(Family &family) {
  while (true) {
    auto ops = findFollowers(family.getEnds(), family.getResultAxis());
    if (ops.empty())
      return;
    family.followers.push_back(ops);
  }
}

// --- Whether it pays

namespace {

/// What reads an end of a family.
struct Readers {
  llvm::SmallSetVector<Operation *, 16> pointwise; // and what these lead to
  bool needsCopy = false; // read where it lies, without gaps
};

} // namespace

static bool takesStrides(Operation *op) {
  if (isa<ElementOpInterface>(op))
    return true;
  auto kernel = dyn_cast<KernelOpInterface>(op);
  return kernel && (kernel.getKernelKind() == KernelKind::row ||
                    kernel.getKernelKind() == KernelKind::contraction ||
                    kernel.getKernelKind() == KernelKind::attention);
}

/// Visits what reads `value` or a view of it.
static void forEachReader(Value value,
                          llvm::function_ref<void(Operation *)> visit) {
  for (Operation *user : value.getUsers())
    if (isa<ReshapeOp>(user))
      forEachReader(user->getResult(0), visit);
    else
      visit(user);
}

static Readers findReaders(Value end) {
  constexpr size_t kMaxOps = 64;
  Readers readers;
  auto visit = [&](Operation *op) {
    if (isa<PointwiseOpInterface>(op))
      readers.pointwise.insert(op);
  };
  forEachReader(end, [&](Operation *op) {
    visit(op);
    readers.needsCopy |= !isa<PointwiseOpInterface>(op) && !takesStrides(op);
  });
  for (size_t i = 0; i < readers.pointwise.size() && i < kMaxOps; ++i)
    forEachReader(readers.pointwise[i]->getResult(0), visit);
  return readers;
}

/// At most so many kernels become of what the products' kernels do besides:
/// copies, and pointwise ops, those that come together in one.
static size_t countOtherKernels(Family &family) {
  size_t copies = 0;
  SmallVector<llvm::SmallSetVector<Operation *, 16>> kernels;
  for (Value end : family.getEnds()) {
    Readers readers = findReaders(end);
    copies += readers.needsCopy;
    if (readers.pointwise.empty())
      continue;
    auto meets = [&](const auto &kernel) {
      return llvm::any_of(kernel, [&](Operation *op) {
        return readers.pointwise.contains(op);
      });
    };
    for (const auto &kernel : kernels)
      if (meets(kernel))
        readers.pointwise.insert(kernel.begin(), kernel.end());
    llvm::erase_if(kernels, meets);
    kernels.push_back(readers.pointwise);
  }
  return copies + kernels.size();
}

// --- The merged product

/// Brings what computes a parameter before `place`.
static void hoist(Value value, Operation *place) {
  Operation *op = value.getDefiningOp();
  if (op->getBlock() != place->getBlock() || op->isBeforeInBlock(place))
    return;
  for (Value operand : op->getOperands())
    hoist(operand, place);
  op->moveBefore(place);
}

namespace {

class Merger {
public:
  explicit Merger(Family &family)
      : family(family), first(family.products.front()), builder(first),
        axis(family.getResultAxis()), place(first) {}

  Operation *run();

private:
  Value concatenate(ArrayRef<Value> parts, int64_t axis);
  Value merge(ArrayRef<Value> operands, Type elementType);
  Operation *cloneMerged(ArrayRef<Operation *> ops);
  void replaceEnds(Value merged);

  Family &family;
  MatmulOp first;
  OpBuilder builder;
  int64_t axis;
  Operation *place; // that parameters are needed before
};

} // namespace

Value Merger::concatenate(ArrayRef<Value> parts, int64_t axis) {
  AffineExpr extent = builder.getAffineConstantExpr(0);
  for (Value part : parts) {
    hoist(part, place);
    extent = extent + getExtent(part, axis);
  }
  Type type = withExtent(getTensorType(parts.front()), axis, extent);
  return builder.create<ConcatOp>(parts.front().getLoc(), type, parts, axis);
}

/// What an op that follows the merged product reads beside it.
Value Merger::merge(ArrayRef<Value> operands, Type resultType) {
  SmallVector<Value> parts;
  int64_t own = -1;
  for (Value operand : operands) {
    auto [x, ownAxis] = getRepeated(operand, axis);
    parts.push_back(x);
    own = ownAxis;
  }
  Value x = parts.front();
  if (own < 0)
    hoist(x, place);
  else
    x = concatenate(parts, own);
  Type type = withElementType(cast<RankedTensorType>(resultType),
                              getElementTypeOrSelf(x));
  if (x.getType() == type)
    return x;
  return builder.create<BroadcastOp>(operands.front().getLoc(), type, x);
}

/// The first of `ops` with the merged extent and the locations of all.
Operation *Merger::cloneMerged(ArrayRef<Operation *> ops) {
  Operation *merged = builder.clone(*ops.front());
  merged->setLoc(builder.getFusedLoc(
      llvm::map_to_vector(ops, [](Operation *op) { return op->getLoc(); })));
  AffineExpr extent = builder.getAffineConstantExpr(0);
  for (Operation *op : ops)
    extent = extent + getExtent(op->getResult(0), axis);
  Value result = merged->getResult(0);
  result.setType(withExtent(getTensorType(result), axis, extent));
  return merged;
}

void Merger::replaceEnds(Value merged) {
  int64_t rank = getRank(merged);
  SmallVector<int64_t> steps(rank, 1);
  SmallVector<AffineExpr> starts(rank, builder.getAffineConstantExpr(0));
  for (Value end : family.getEnds()) {
    Value part = builder.create<SliceOp>(
        end.getLoc(), end.getType(), merged,
        makeSizeMap(starts, builder.getContext()), steps);
    starts[axis] = starts[axis] + getExtent(end, axis);
    end.replaceAllUsesWith(part);
  }
}

Operation *Merger::run() {
  SmallVector<Operation *> products(family.products.begin(),
                                    family.products.end());
  Value parameter =
      concatenate(getOperands(products, family.operand), family.getAxis());
  Operation *product = cloneMerged(products);
  place = product;
  product->setOperand(family.operand, parameter);
  Value end = product->getResult(0);
  Value before = first.getResult();
  for (ArrayRef<Operation *> ops : family.followers) {
    SmallVector<Value> operands;
    Operation *merged = cloneMerged(ops);
    builder.setInsertionPoint(merged);
    Type type = merged->getResult(0).getType();
    for (auto [i, operand] : llvm::enumerate(ops.front()->getOperands()))
      operands.push_back(operand == before ? end
                                           : merge(getOperands(ops, i), type));
    merged->setOperands(operands);
    builder.setInsertionPoint(first);
    before = ops.front()->getResult(0);
    end = merged->getResult(0);
  }
  replaceEnds(end);
  for (ArrayRef<Operation *> ops : llvm::reverse(family.followers))
    llvm::for_each(ops, [](Operation *op) { op->erase(); });
  llvm::for_each(products, [](Operation *op) { op->erase(); });
  return product;
}

namespace {

struct MergeProductsPass : impl::MergeProductsPassBase<MergeProductsPass> {
  void runOnOperation() override {
    DecisionLog log(getOperation(), "merge-products");
    for (Family &family : collectFamilies(getOperation())) {
      addFollowers(family);
      size_t count = family.products.size();
      if (1 + countOtherKernels(family) > count)
        log.add(family.products.front(), "kept apart",
                "what follows each product would be a kernel of its own");
      else
        log.add(Merger(family).run(), "merged", "products of one tensor",
                {{"products", double(count)}});
    }
  }
};

} // namespace
} // namespace tcc
