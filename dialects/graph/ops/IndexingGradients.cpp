#include "dialects/graph/Gathers.h"
#include "dialects/graph/ops/TensorEmitter.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace tcc::graph;

static RankedTensorType getType(Value tensor) {
  return cast<RankedTensorType>(tensor.getType());
}

/// The permutation of `rank` axes that brings `count` axes from `first` on to
/// the front.
static SmallVector<int64_t> bringToFront(int64_t rank, int64_t first,
                                         int64_t count) {
  SmallVector<int64_t> permutation =
      llvm::to_vector(llvm::seq<int64_t>(first, first + count));
  for (int64_t axis = 0; axis < rank; ++axis)
    if (axis < first || axis >= first + count)
      permutation.push_back(axis);
  return permutation;
}

// --- gather ------------------------------------------------------------------

namespace {

/// For each slice of x, the places in constant indices that read it, in order:
/// the gradient of a gather is a sum of gathers of its result's gradient. Each
/// element of that sum is on its own, while a scatter adds one element after
/// the other.
class Readers {
public:
  /// None if indices are not constant, one is out of range, or so many read one
  /// slice, or so few any, that most terms of the sum would be empty.
  static std::optional<Readers> find(GatherOp op);

  /// The sum of what each slice's readers have in `updates`, whose `axis` is
  /// that of the indices.
  Value add(const TensorEmitter &emitter, Value updates, int64_t axis) const;

private:
  /// A longer sum is more code than a scatter.
  static constexpr size_t kMaxTerms = 16;

  /// What reader `term` of each slice has in `updates`, 0 where it has none.
  Value emitTerm(const TensorEmitter &emitter, Value updates, int64_t axis,
                 size_t term) const;

  std::vector<SmallVector<int64_t>> places; // a slice of x
  size_t termCount = 0;                     // the most readers of a slice
};

} // namespace

std::optional<Readers> Readers::find(GatherOp op) {
  auto slices = findSlices(op);
  if (!slices)
    return std::nullopt;
  auto extent = getConstant(getExtent(op.getX(), op.getAxis()));
  Readers readers;
  readers.places.resize(*extent);
  for (auto [place, slice] : llvm::enumerate(*slices)) {
    readers.places[slice].push_back(place);
    readers.termCount =
        std::max(readers.termCount, readers.places[slice].size());
  }
  // So many terms of slices for each index: most are not empty.
  constexpr int64_t kMostShare = 4;
  int64_t terms = *extent * int64_t(readers.termCount);
  if (readers.termCount == 0 || readers.termCount > kMaxTerms ||
      terms > kMostShare * int64_t(slices->size()))
    return std::nullopt;
  return readers;
}

Value Readers::emitTerm(const TensorEmitter &emitter, Value updates,
                        int64_t axis, size_t term) const {
  SmallVector<int64_t> indices;
  SmallVector<bool> isRead;
  for (ArrayRef<int64_t> readers : places) {
    isRead.push_back(term < readers.size());
    indices.push_back(isRead.back() ? readers[term] : 0);
  }
  int64_t count = indices.size();
  auto makeConstant = [&](Type type, auto values) {
    auto vector = RankedTensorType::get({count}, type);
    return emitter.emit<ConstantOp>(vector,
                                    DenseElementsAttr::get(vector, values));
  };
  Value part = emitter.emit<GatherOp>(
      updates, makeConstant(emitter.builder.getI64Type(), ArrayRef(indices)),
      axis, /*nonnegative=*/true);
  if (!llvm::is_contained(isRead, false))
    return part;
  Value flags = makeConstant(emitter.builder.getI1Type(), ArrayRef(isRead));
  auto type = ::getType(part);
  Extents alongAxis(type.getRank(), emitter.builder.getAffineConstantExpr(1));
  alongAxis[axis] = emitter.builder.getAffineConstantExpr(count);
  Value condition = emitter.emit<BroadcastOp>(
      withElementType(type, emitter.builder.getI1Type()),
      emitter.reshape(flags, alongAxis));
  return emitter.emit<SelectOp>(condition, part, emitter.splat(part, 0.0));
}

Value Readers::add(const TensorEmitter &emitter, Value updates,
                   int64_t axis) const {
  Value sum = emitTerm(emitter, updates, axis, 0);
  for (size_t term = 1; term < termCount; ++term)
    sum = emitter.emit<AddOp>(sum, emitTerm(emitter, updates, axis, term));
  return sum;
}

/// The gradient of the gather's result with one axis for all of the indices.
static Value joinIndexAxes(const TensorEmitter &emitter, Value updates,
                           int64_t axis, Value indices) {
  Extents extents = getExtents(updates);
  auto first = extents.begin() + axis;
  extents.erase(first, first + ::getType(indices).getRank());
  extents.insert(extents.begin() + axis,
                 emitter.builder.getAffineConstantExpr(
                     ::getType(indices).getNumElements()));
  return emitter.reshape(updates, extents);
}

/// Adds slices where they were read. Tuples index leading axes, so that the
/// axis stands first.
static Value scatterSlices(const TensorEmitter &emitter, GatherOp op,
                           Value updates) {
  int64_t axis = op.getAxis(), rank = ::getType(op.getX()).getRank();
  SmallVector<int64_t> order = bringToFront(rank, axis, 1);
  updates = emitter.emit<TransposeOp>(
      updates, bringToFront(::getType(updates).getRank(), axis,
                            ::getType(op.getIndices()).getRank()));
  Value zeros = emitter.splat(
      makeTensorType(applyPermutation(getExtents(op.getX()), order),
                     getElementTypeOrSelf(updates)),
      0.0);
  Value sum = emitter.emit<ScatterNdOp>(
      zeros, makeTuples(emitter.builder, op.getLoc(), op.getIndices()), updates,
      ScatterKind::add);
  return emitter.emit<TransposeOp>(sum, invertPermutationVector(order));
}

LogicalResult GatherOp::emitGradients(Gradients &gradients) {
  TensorEmitter emitter(gradients.getBuilder(), getLoc());
  Value updates = gradients.get(getResult());
  if (auto readers = Readers::find(*this))
    gradients.add(getX(), readers->add(emitter,
                                       joinIndexAxes(emitter, updates,
                                                     getAxis(), getIndices()),
                                       getAxis()));
  else
    gradients.add(getX(), scatterSlices(emitter, *this, updates));
  return success();
}

/// True if `indices` has one index for each row of x along `axis`.
static bool hasOneIndexPerRow(Value x, Value indices, int64_t axis) {
  for (auto [i, extents] :
       llvm::enumerate(llvm::zip_equal(getExtents(x), getExtents(indices)))) {
    auto [whole, part] = extents;
    if (int64_t(i) == axis ? getConstant(part) != 1 : !isEqual(whole, part))
      return false;
  }
  return true;
}

/// `updates` where the index along `axis` of `type` is that of `indices`, both
/// with one element along it; zero elsewhere.
static Value placeInRows(const TensorEmitter &emitter, RankedTensorType type,
                         Value indices, Value updates, int64_t axis) {
  auto whole = withElementType(type, getElementTypeOrSelf(indices));
  Value extent = emitter.emit<BroadcastOp>(
      whole, emitter.emit<CastOp>(
                 emitter.emit<SizeOp>(makeSizeMap(
                     getExtents(type)[axis], emitter.builder.getContext())),
                 whole.getElementType()));
  Expr index{emitter.emit<BroadcastOp>(whole, indices), &emitter};
  Expr wrapped = select(compare(CompareKind::lt, index, index.like(0.0)),
                        index + Expr{extent, &emitter}, index);
  Expr place{emitter.emit<IotaOp>(whole, axis), &emitter};
  return emitter.emit<SelectOp>(compare(CompareKind::eq, place, wrapped).value,
                                emitter.emit<BroadcastOp>(type, updates),
                                emitter.splat(type, 0.0));
}

LogicalResult GatherElementsOp::emitGradients(Gradients &gradients) {
  TensorEmitter emitter(gradients.getBuilder(), getLoc());
  Value updates = gradients.get(getResult());
  auto type = ::getType(getX());
  if (hasOneIndexPerRow(getX(), getIndices(), getAxis())) {
    gradients.add(getX(),
                  placeInRows(emitter, type, getIndices(), updates, getAxis()));
    return success();
  }
  gradients.add(getX(), emitter.emit<ScatterElementsOp>(
                            emitter.splat(type, 0.0), getIndices(), updates,
                            getAxis(), ScatterKind::add));
  return success();
}

LogicalResult GatherNdOp::emitGradients(Gradients &gradients) {
  TensorEmitter emitter(gradients.getBuilder(), getLoc());
  Value tuples =
      addBatchIndices(emitter.builder, getLoc(), getIndices(), getBatchDims());
  gradients.add(getX(), emitter.emit<ScatterNdOp>(
                            emitter.splat(getX(), 0.0), tuples,
                            gradients.get(getResult()), ScatterKind::add));
  return success();
}

// --- scatter -----------------------------------------------------------------

namespace {

/// Gradients of result = scatter(x, updates, kind); gather reads where updates
/// went. They are those that PyTorch defines.
class ScatterGradients {
public:
  using Scatter = llvm::function_ref<Value(Value, Value, ScatterKind)>;
  using Gather = llvm::function_ref<Value(Value)>;

  ScatterGradients(Gradients &gradients, const TensorEmitter &emitter,
                   OpResult result, Scatter scatter, Gather gather)
      : gradients(gradients), emitter(emitter), scatter(scatter),
        gather(gather), x(result.getOwner()->getOperand(0)),
        updates(result.getOwner()->getOperand(2)), y(result),
        dy(gradients.get(result)) {}

  void run(ScatterKind kind) {
    if (kind == ScatterKind::mul)
      return addOfProducts();
    if (kind == ScatterKind::max || kind == ScatterKind::min)
      return addOfExtrema();
    // Elements that were replaced have no gradient.
    if (gradients.wants(x))
      gradients.add(x, kind == ScatterKind::add
                           ? dy
                           : scatter(dy, emitter.splat(updates, 0.0), kind));
    if (gradients.wants(updates))
      gradients.add(updates, gather(dy));
  }

private:
  Expr wrap(Value value) { return {value, &emitter}; }
  Expr gatherExpr(Expr value) { return wrap(gather(value.value)); }
  /// 1 where `condition` holds for elements of `like`, 0 elsewhere.
  static Expr count(Expr condition, Expr like) {
    return select(condition, 1.0, like.like(0.0));
  }
  static Expr isEqual(Expr lhs, Expr rhs) {
    return compare(CompareKind::eq, lhs, rhs);
  }

  /// A factor's gradient is the product of the others: without zeros y / x.
  /// With them it is not 0 if there is none but maybe the factor.
  void addOfProducts() {
    Expr factors[] = {wrap(x), wrap(updates)};
    SmallVector<Expr> divisors, zeros;
    for (Expr factor : factors) {
      zeros.push_back(count(isEqual(factor, factor.like(0.0)), factor));
      divisors.push_back(select(zeros.back() > 0.0, 1.0, factor));
    }
    auto combine = [&](ArrayRef<Expr> parts, ScatterKind kind) {
      return wrap(scatter(parts[0].value, parts[1].value, kind));
    };
    Expr product = wrap(dy) * combine(divisors, ScatterKind::mul);
    Expr total = combine(zeros, ScatterKind::add);
    auto derive = [&](unsigned i, Expr product, Expr total) {
      return select(isEqual(total, zeros[i]), product / divisors[i], 0.0).value;
    };
    gradients.add(x, derive(0, product, total));
    gradients.add(updates, derive(1, gatherExpr(product), gatherExpr(total)));
  }

  /// Shared by all that are the largest, or smallest.
  void addOfExtrema() {
    Expr isX = isEqual(wrap(x), wrap(y));
    Expr isUpdate = isEqual(wrap(updates), wrap(gather(y)));
    Expr ofX = count(isX, wrap(x)), ofUpdate = count(isUpdate, wrap(updates));
    Expr share =
        wrap(dy) / wrap(scatter(ofX.value, ofUpdate.value, ScatterKind::add));
    gradients.add(x, (share * ofX).value);
    gradients.add(updates, (gatherExpr(share) * ofUpdate).value);
  }

  Gradients &gradients;
  const TensorEmitter &emitter;
  Scatter scatter;
  Gather gather;
  Value x, updates, y, dy;
};

} // namespace

LogicalResult ScatterElementsOp::emitGradients(Gradients &gradients) {
  TensorEmitter emitter(gradients.getBuilder(), getLoc());
  auto scatter = [&](Value x, Value updates, ScatterKind kind) {
    return emitter.emit<ScatterElementsOp>(x, getIndices(), updates, getAxis(),
                                           kind);
  };
  auto gather = [&](Value value) {
    return emitter.emit<GatherElementsOp>(value, getIndices(), getAxis());
  };
  ScatterGradients(gradients, emitter, cast<OpResult>(getResult()), scatter,
                   gather)
      .run(getKind());
  return success();
}

LogicalResult ScatterNdOp::emitGradients(Gradients &gradients) {
  TensorEmitter emitter(gradients.getBuilder(), getLoc());
  auto scatter = [&](Value x, Value updates, ScatterKind kind) {
    return emitter.emit<ScatterNdOp>(x, getIndices(), updates, kind);
  };
  auto gather = [&](Value value) {
    return emitter.emit<GatherNdOp>(value, getIndices(), /*batch_dims=*/0);
  };
  ScatterGradients(gradients, emitter, cast<OpResult>(getResult()), scatter,
                   gather)
      .run(getKind());
  return success();
}

LogicalResult TopKOp::emitGradients(Gradients &gradients) {
  TensorEmitter emitter(gradients.getBuilder(), getLoc());
  gradients.add(getX(),
                emitter.emit<ScatterElementsOp>(
                    emitter.splat(getX(), 0.0), getIndices(),
                    gradients.get(getValues()), getAxis(), ScatterKind::add));
  return success();
}
