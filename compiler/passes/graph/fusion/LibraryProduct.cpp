// Finds the matrix product in a kernel.

#include "compiler/passes/graph/fusion/LibraryWork.h"

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

  std::optional<LibraryWork> describe(ArrayRef<Value> results);

private:
  bool traceOperands();
  std::optional<LoopStrides> trace(Value tensor, AffineMap map);
  std::optional<LoopStrides> spread(const StridedInput &from, Value tensor,
                                    AffineMap map);
  bool staysInside(Value tensor, AffineMap map) const;
  std::optional<Epilogue> match(ArrayRef<Value> results);
  void addDepthSums(LibraryWork &work, ArrayRef<Value> results);
  bool traceEpilogue(const Epilogue &epilogue);
  std::optional<LoopClass> classify(size_t loop) const;
  bool classifyLoops();
  bool follows(size_t outer, size_t inner) const;
  void mergeLoops(LoopClass which);
  bool arrangeLoops();
  WorkOperand makeMatrix(const LoopStrides &tensor, LoopClass rows,
                         LoopClass columns) const;
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
  Value result, stored; // what the activation is of, null if that is not stored
  SmallVector<LoopStrides> tensors; // lhs, rhs, result, addends..., [other],
                                    //   [stored]
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

/// Tells the result from what its activation is of, if both are stored.
std::optional<Epilogue> ProductDescriber::match(ArrayRef<Value> results) {
  for (Value candidate : results) {
    auto epilogue = matchEpilogue(candidate, anchor->getResult(0), isInput);
    if (!epilogue)
      return std::nullopt;
    result = candidate;
    if (results.size() == 1)
      return epilogue;
    stored = candidate == results.front() ? results.back() : results.front();
    if (results.size() == 2 && isActivated(stored, *epilogue))
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
  return addStored(result) && llvm::all_of(epilogue.addends, addRead) &&
         (!epilogue.other || addRead(epilogue.other)) &&
         (!stored || addStored(stored));
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

WorkOperand ProductDescriber::makeMatrix(const LoopStrides &tensor,
                                         LoopClass rows,
                                         LoopClass columns) const {
  auto stride = [&](LoopClass which) {
    return classes[which].empty() ? constant(0)
                                  : tensor.strides[classes[which].front()];
  };
  return {tensor.input,
          getElementTypeOrSelf(tensor.input),
          tensor.offset,
          {getExtent(kBatch), getExtent(rows), getExtent(columns)},
          {stride(kBatch), stride(rows), stride(columns)}};
}

/// A further result of the op, behind all steps.
void ProductDescriber::addDepthSums(LibraryWork &work,
                                    ArrayRef<Value> results) {
  if (!llvm::any_of(results, [&](Value result) { return isDepthSum(result); }))
    return;
  Value sums = anchor->getResult(1);
  auto kind = op.getResultMap(1).isFunctionOfDim(0) ? format::StepKind::sum_lhs
                                                    : format::StepKind::sum_rhs;
  work.steps.push_back(
      {kind, 1, makeVector(kind, work, sums, getElementTypeOrSelf(sums))});
}

std::optional<LibraryWork> ProductDescriber::describe(ArrayRef<Value> results) {
  SmallVector<Value> products(llvm::make_filter_range(
      results, [&](Value result) { return !isDepthSum(result); }));
  std::optional<Epilogue> epilogue = match(products);
  if (!epilogue || !traceOperands() || !traceEpilogue(*epilogue) ||
      !classifyLoops() || !arrangeLoops())
    return std::nullopt;
  LibraryWork work;
  work.kind = format::WorkKind::product;
  work.lhs = makeMatrix(tensors[0], kRow, kDepth);
  work.rhs = makeMatrix(tensors[1], kDepth, kColumn);
  work.result = makeMatrix(tensors[2], kRow, kColumn);
  work.tf32 = isTf32Allowed(anchor);
  SmallVector<WorkOperand> rest;
  for (const LoopStrides &tensor : ArrayRef(tensors).drop_front(3))
    rest.push_back(makeMatrix(tensor, kRow, kColumn));
  auto takeLast = [&](Value value) {
    return value ? std::optional(rest.pop_back_val()) : std::nullopt;
  };
  std::optional<WorkOperand> storedAt = takeLast(stored);
  std::optional<WorkOperand> otherAt = takeLast(epilogue->other);
  addSteps(work, *epilogue, rest, otherAt, storedAt);
  addDepthSums(work, results);
  return work;
}

std::optional<LibraryWork> describeProduct(Operation *anchor,
                                           ArrayRef<Value> results,
                                           function_ref<bool(Value)> isInput) {
  auto kernel = dyn_cast<KernelOpInterface>(anchor);
  if (!isa<IterationOpInterface>(anchor) || !kernel ||
      kernel.getKernelKind() != KernelKind::contraction)
    return std::nullopt;
  return ProductDescriber(anchor, isInput).describe(results);
}

} // namespace tcc::fusion
