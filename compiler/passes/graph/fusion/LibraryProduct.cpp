#include "compiler/passes/graph/fusion/LibraryProduct.h"

#include "compiler/passes/graph/fusion/Epilogue.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::fusion {

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

namespace {

/// The strides of a tensor along the loops of an op.
struct LoopStrides {
  Value input;
  AffineExpr offset;
  Extents strides;
};

/// Loops that do the same to all matrices: in `classes` by who is indexed.
enum LoopClass { kBatch, kRow, kColumn, kDepth, kClasses };

class ProductDescriber {
public:
  ProductDescriber(Operation *anchor, function_ref<bool(Value)> isInput)
      : anchor(anchor), op(cast<IterationOpInterface>(anchor)),
        isInput(isInput), extents(op.getLoopExtents()),
        kinds(op.getLoopKinds()) {}

  std::optional<LibraryProduct> describe(ArrayRef<Value> results);

private:
  bool traceOperands();
  std::optional<LoopStrides> trace(Value tensor, AffineMap map);
  std::optional<LoopStrides> spread(const StridedInput &from, Value tensor,
                                    AffineMap map);
  bool staysInside(Value tensor, AffineMap map) const;
  std::optional<Epilogue> match(ArrayRef<Value> results);
  bool placeDepthSums(LibraryProduct &product, ArrayRef<Value> results);
  bool traceEpilogue(const Epilogue &epilogue);
  std::optional<LoopClass> classify(size_t loop) const;
  bool classifyLoops();
  bool follows(size_t outer, size_t inner) const;
  void mergeLoops(LoopClass which);
  bool arrangeLoops();
  StridedMatrix makeMatrix(const LoopStrides &tensor, LoopClass rows,
                           LoopClass columns) const;
  bool placeAddends(LibraryProduct &product) const;
  bool placeSum(LibraryProduct &product) const;
  bool isDepthSum(Value result) const {
    return result.getDefiningOp() == anchor && result != anchor->getResult(0);
  }
  AffineExpr constant(int64_t value) const {
    return getAffineConstantExpr(value, anchor->getContext());
  }
  AffineExpr getExtent(LoopClass which) const {
    return classes[which].empty() ? constant(1)
                                  : extents[classes[which].front()];
  }

  Operation *anchor;
  IterationOpInterface op;
  function_ref<bool(Value)> isInput;
  Extents extents;
  SmallVector<mlir::utils::IteratorType> kinds;
  Value result, sum; // the sum's is null if it is not stored or read
  SmallVector<LoopStrides> tensors; // lhs, rhs, result, [sum], addends...
  SmallVector<size_t> classes[kClasses];
};

/// Walked backwards, as no library does.
bool isNegative(AffineExpr stride) {
  return getConstant(stride).value_or(0) < 0;
}
bool isZero(AffineExpr expression) { return getConstant(expression) == 0; }
bool isOne(AffineExpr expression) { return getConstant(expression) == 1; }

/// The coefficients of the loops in `index`; false if it is no sum of them.
bool addCoefficients(AffineExpr index, int64_t factor,
                     MutableArrayRef<int64_t> coefficients) {
  if (auto loop = dyn_cast<AffineDimExpr>(index)) {
    coefficients[loop.getPosition()] += factor;
    return true;
  }
  if (auto constant = dyn_cast<AffineConstantExpr>(index))
    return constant.getValue() == 0;
  auto binary = dyn_cast<AffineBinaryOpExpr>(index);
  if (!binary)
    return false;
  if (binary.getKind() == AffineExprKind::Add)
    return addCoefficients(binary.getLHS(), factor, coefficients) &&
           addCoefficients(binary.getRHS(), factor, coefficients);
  auto scale = dyn_cast<AffineConstantExpr>(binary.getRHS());
  return binary.getKind() == AffineExprKind::Mul && scale &&
         addCoefficients(binary.getLHS(), factor * scale.getValue(),
                         coefficients);
}

} // namespace

/// No index that the loops reach lies behind the tensor's end.
bool ProductDescriber::staysInside(Value tensor, AffineMap map) const {
  for (auto [axis, index] : llvm::enumerate(map.getResults())) {
    SmallVector<int64_t> coefficients(extents.size());
    if (!addCoefficients(index, 1, coefficients))
      return false;
    AffineExpr last = constant(0);
    for (auto [extent, coefficient] : llvm::zip_equal(extents, coefficients))
      last = last + (extent - 1) * coefficient;
    AffineExpr room = graph::getExtent(tensor, axis) - 1 - last;
    std::optional<int64_t> known = getConstant(room);
    if (known ? *known < 0 : !isEqual(room, constant(0)))
      return false;
  }
  return true;
}

std::optional<LoopStrides> ProductDescriber::spread(const StridedInput &from,
                                                    Value tensor,
                                                    AffineMap map) {
  if (!from.input || !map || !staysInside(tensor, map))
    return std::nullopt;
  LoopStrides result{from.input, from.offset,
                     Extents(extents.size(), constant(0))};
  for (auto [stride, index] : llvm::zip_equal(from.strides, map.getResults())) {
    SmallVector<int64_t> coefficients(extents.size());
    addCoefficients(index, 1, coefficients);
    for (auto [sum, coefficient] :
         llvm::zip_equal(result.strides, coefficients))
      sum = sum + stride * coefficient;
  }
  if (llvm::any_of(result.strides, isNegative))
    return std::nullopt;
  return result;
}

std::optional<LoopStrides> ProductDescriber::trace(Value tensor,
                                                   AffineMap map) {
  return spread(traceInput(tensor, isInput), tensor, map);
}

bool ProductDescriber::traceOperands() {
  if (anchor->getNumOperands() != 2)
    return false;
  for (unsigned i : {0u, 1u}) {
    auto operand = trace(anchor->getOperand(i), op.getOperandMap(i));
    if (!operand)
      return false;
    tensors.push_back(*operand);
  }
  return true;
}

/// Tells the result from a sum that is stored, too. A gradient reads one.
std::optional<Epilogue> ProductDescriber::match(ArrayRef<Value> results) {
  for (Value candidate : results) {
    auto epilogue = matchEpilogue(candidate, anchor->getResult(0), isInput);
    if (!epilogue)
      return std::nullopt;
    result = candidate;
    if (results.size() == 1) {
      sum = epilogue->activated;
      return epilogue;
    }
    sum = candidate == results.front() ? results.back() : results.front();
    if (results.size() == 2 &&
        isa_and_nonnull<GeluTanhOp>(epilogue->activation) &&
        isActivated(sum, *epilogue))
      return epilogue;
  }
  return std::nullopt;
}

/// The results and the addends, whatever their shape, walked as the anchor's
/// result.
bool ProductDescriber::traceEpilogue(const Epilogue &epilogue) {
  Value product = anchor->getResult(0);
  Extents shape = getExtents(product);
  AffineMap map = op.getResultMap(0);
  auto add = [&](Value value, StridedInput from) {
    std::optional<Extents> strides;
    if (from.input)
      strides = reshapeStrides(from.strides, getExtents(value), shape);
    if (!strides)
      return false;
    from.strides = *strides;
    auto traced = spread(from, product, map);
    if (traced)
      tensors.push_back(*traced);
    return traced.has_value();
  };
  auto addStored = [&](Value value) {
    return add(value, {value, getRowMajorStrides(value), constant(0)});
  };
  auto addRead = [&](Value value) {
    return add(value, traceInput(value, isInput, /*throughCasts=*/true));
  };
  if (!addStored(result) ||
      (sum && !(epilogue.activated ? addRead(sum) : addStored(sum))))
    return false;
  for (Value addend : epilogue.addends)
    if (!addRead(addend))
      return false;
  return true;
}

/// By who is indexed: batches index all, rows the left side and the result,
/// columns the right one and the result, and depth both sides.
std::optional<LoopClass> ProductDescriber::classify(size_t loop) const {
  bool left = !isZero(tensors[0].strides[loop]);
  bool right = !isZero(tensors[1].strides[loop]);
  bool isReduced = kinds[loop] == mlir::utils::IteratorType::reduction;
  if (isReduced)
    return left && right ? std::optional(kDepth) : std::nullopt;
  if (left && right)
    return kBatch;
  return left ? kRow : kColumn;
}

bool ProductDescriber::classifyLoops() {
  for (size_t loop = 0; loop < extents.size(); ++loop) {
    if (isOne(extents[loop]))
      continue;
    std::optional<LoopClass> which = classify(loop);
    if (!which)
      return false;
    classes[*which].push_back(loop);
  }
  return true;
}

/// Whether two loops are one, in all matrices.
bool ProductDescriber::follows(size_t outer, size_t inner) const {
  return llvm::all_of(tensors, [&](const LoopStrides &tensor) {
    return isEqual(tensor.strides[outer],
                   tensor.strides[inner] * extents[inner]);
  });
}

/// Neighbours that are one loop become the inner one.
void ProductDescriber::mergeLoops(LoopClass which) {
  SmallVector<size_t> merged;
  for (size_t loop : classes[which]) {
    if (!merged.empty() && follows(merged.back(), loop)) {
      extents[loop] = extents[merged.back()] * extents[loop];
      merged.back() = loop;
      continue;
    }
    merged.push_back(loop);
  }
  classes[which] = merged;
}

/// One loop a class at most; rows or columns may give one to the batch.
bool ProductDescriber::arrangeLoops() {
  for (LoopClass which : {kBatch, kRow, kColumn, kDepth})
    mergeLoops(which);
  for (LoopClass which : {kRow, kColumn})
    if (classes[which].size() == 2 && classes[kBatch].empty()) {
      classes[kBatch].push_back(classes[which].front());
      classes[which].erase(classes[which].begin());
    }
  return llvm::all_of(classes, [](auto &loops) { return loops.size() <= 1; });
}

StridedMatrix ProductDescriber::makeMatrix(const LoopStrides &tensor,
                                           LoopClass rows,
                                           LoopClass columns) const {
  auto stride = [&](LoopClass which) {
    return classes[which].empty() ? constant(0)
                                  : tensor.strides[classes[which].front()];
  };
  return {tensor.input, tensor.offset, stride(kBatch), stride(rows),
          stride(columns)};
}

/// A matrix whose rows or columns are adjacent elements; those of extent 1 are.
static bool hasUnitStride(const StridedMatrix &matrix, AffineExpr rows,
                          AffineExpr columns) {
  return isOne(matrix.row) || isOne(matrix.column) || isOne(rows) ||
         isOne(columns);
}

static Type getElement(const StridedMatrix &matrix) {
  return getElementTypeOrSelf(matrix.input);
}

bool ProductDescriber::placeAddends(LibraryProduct &product) const {
  for (const LoopStrides &tensor : ArrayRef(tensors).drop_front(sum ? 4 : 3)) {
    StridedMatrix matrix = makeMatrix(tensor, kRow, kColumn);
    bool isVector = !product.bias && isZero(matrix.batch) &&
                    isZero(matrix.row) && isOne(matrix.column) &&
                    isOne(product.result.column);
    std::optional<StridedMatrix> &place =
        isVector ? product.bias : product.addend;
    if (place || getElement(matrix) != getElement(product.result))
      return false;
    // Both lie in memory in one order.
    if (!isVector && (isOne(matrix.row) != isOne(product.result.row) ||
                      isOne(matrix.column) != isOne(product.result.column)))
      return false;
    place = matrix;
  }
  return true;
}

/// The library has the result and the sum in one order and in one narrow type,
/// and no batch of sums.
bool ProductDescriber::placeSum(LibraryProduct &product) const {
  if (!sum)
    return true;
  StridedMatrix matrix = makeMatrix(tensors[3], kRow, kColumn);
  Type element = getElement(matrix);
  product.sum = matrix;
  return isOne(product.batch) && (element.isBF16() || element.isF16()) &&
         element == getElement(product.result) && isOne(matrix.column) &&
         isOne(product.result.column);
}

/// A further result of the op. Libraries put nothing else behind such a product
/// but an addend, and sum what lies with its depth outermost.
bool ProductDescriber::placeDepthSums(LibraryProduct &product,
                                      ArrayRef<Value> results) {
  if (!llvm::any_of(results, [&](Value result) { return isDepthSum(result); }))
    return true;
  Value sums = anchor->getResult(1);
  bool sumsLhs = op.getResultMap(1).isFunctionOfDim(0);
  AffineExpr zero = constant(0), one = constant(1);
  product.depthSums = {sums, zero, zero, sumsLhs ? one : zero,
                       sumsLhs ? zero : one};
  product.sumsLhs = sumsLhs;
  AffineExpr adjacent = sumsLhs ? product.lhs.row : product.rhs.column;
  Type element = getElement(product.lhs);
  return isOne(adjacent) && (element.isBF16() || element.isF16()) &&
         product.scale == 1 && !product.bias && !product.activation &&
         isOne(product.batch) && isOne(product.result.column) &&
         getElement(*product.depthSums) == getElement(product.result);
}

/// The types that the library multiplies and sums as our kernels do.
static bool areTypesKnown(const LibraryProduct &product) {
  Type left = getElement(product.lhs), result = getElement(product.result);
  bool isNarrow = left.isBF16() || left.isF16();
  return left == getElement(product.rhs) &&
         (left.isF32() || left.isF64() || isNarrow) &&
         (left == result || (isNarrow && result.isF32()));
}

static bool isTf32Allowed(Operation *anchor) {
  auto op = dyn_cast<PrecisionOpInterface>(anchor);
  return op && getElementTypeOrSelf(anchor->getOperand(0)).isF32() &&
         op.isTf32Allowed();
}

std::optional<LibraryProduct>
ProductDescriber::describe(ArrayRef<Value> results) {
  SmallVector<Value> products(llvm::make_filter_range(
      results, [&](Value result) { return !isDepthSum(result); }));
  std::optional<Epilogue> epilogue = match(products);
  if (!epilogue || !traceOperands() || !traceEpilogue(*epilogue) ||
      !classifyLoops() || !arrangeLoops())
    return std::nullopt;
  LibraryProduct product{getExtent(kBatch),
                         getExtent(kRow),
                         getExtent(kColumn),
                         getExtent(kDepth),
                         makeMatrix(tensors[0], kRow, kDepth),
                         makeMatrix(tensors[1], kDepth, kColumn),
                         makeMatrix(tensors[2], kRow, kColumn),
                         std::nullopt,
                         std::nullopt,
                         epilogue->scale,
                         epilogue->activation,
                         isTf32Allowed(anchor),
                         std::nullopt,
                         std::nullopt};
  bool isKnown = areTypesKnown(product) &&
                 hasUnitStride(product.lhs, product.m, product.k) &&
                 hasUnitStride(product.rhs, product.k, product.n) &&
                 hasUnitStride(product.result, product.m, product.n);
  if (!isKnown || !placeAddends(product) || !placeSum(product) ||
      !placeDepthSums(product, results))
    return std::nullopt;
  return product;
}

std::optional<LibraryProduct>
describeProduct(Operation *anchor, ArrayRef<Value> results,
                function_ref<bool(Value)> isInput) {
  auto kernel = dyn_cast<KernelOpInterface>(anchor);
  if (!isa<IterationOpInterface>(anchor) || !kernel ||
      kernel.getKernelKind() != KernelKind::contraction)
    return std::nullopt;
  return ProductDescriber(anchor, isInput).describe(results);
}

} // namespace tcc::fusion
