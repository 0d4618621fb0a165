// Finds the matrix product in a kernel.

#include "compiler/passes/graph/fusion/LibraryWork.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::fusion {

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

namespace {

/// Lists of loops that a product has.
enum LoopClass { kBatch, kRow, kColumn, kDepth, kClasses };

class ProductDescriber {
public:
  ProductDescriber(ProductOpInterface op, function_ref<bool(Value)> isInput);

  std::optional<LibraryWork> describe(ArrayRef<Value> results);

private:
  bool traceOperands();
  std::optional<LoopStrides> spread(const StridedInput &from, Value tensor,
                                    AffineMap map);
  std::optional<Epilogue> match(ArrayRef<Value> results);
  void addDepthSums(LibraryWork &work, ArrayRef<Value> results);
  bool traceEpilogue(const Epilogue &epilogue);
  bool follows(size_t outer, size_t inner) const;
  void mergeLoops(LoopClass which);
  void moveRepeatedBatches();
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
  ProductView view;
  function_ref<bool(Value)> isInput;
  Extents extents;      // of all loops
  Value result, stored; // what the activation is of, null if that is not stored
  SmallVector<LoopStrides> tensors; // lhs, rhs, result, addends..., [other],
                                    //   [stored]
  SmallVector<size_t> classes[kClasses];
};

/// Walked backwards, as no library does.
bool isNegative(AffineExpr stride) {
  return getConstant(stride).value_or(0) < 0;
}
bool isOne(AffineExpr expression) { return getConstant(expression) == 1; }

} // namespace

ProductDescriber::ProductDescriber(ProductOpInterface op,
                                   function_ref<bool(Value)> isInput)
    : anchor(op), view(op.getProduct()), isInput(isInput) {
  for (auto [which, loops] :
       {std::pair(kBatch, &view.batch), std::pair(kRow, &view.rows),
        std::pair(kColumn, &view.columns), std::pair(kDepth, &view.depth)})
    for (AffineExpr extent : *loops) {
      if (!isOne(extent))
        classes[which].push_back(extents.size());
      extents.push_back(extent);
    }
}

std::optional<LoopStrides> ProductDescriber::spread(const StridedInput &from,
                                                    Value tensor,
                                                    AffineMap map) {
  std::optional<LoopStrides> result = spreadOverLoops(from, map);
  if (!result || !staysInside(tensor, map, extents) ||
      llvm::any_of(result->strides, isNegative))
    return std::nullopt;
  return result;
}

bool ProductDescriber::traceOperands() {
  if (anchor->getNumOperands() != 2)
    return false;
  for (const ProductSide *side : {&view.lhs, &view.rhs}) {
    Value tensor = anchor->getOperand(side->operand);
    auto operand = spread(traceInput(tensor, isInput), tensor, side->map);
    if (!operand || side->panels)
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
  auto add = [&](Value value, StridedInput from) {
    std::optional<Extents> strides;
    if (from.input)
      strides = reshapeStrides(from.strides, getExtents(value), shape);
    if (!strides)
      return false;
    from.strides = *strides;
    auto traced = spread(from, product, view.result);
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

/// Batches along which one side is repeated are rows or columns of the other.
void ProductDescriber::moveRepeatedBatches() {
  SmallVector<size_t> own;
  SmallVector<size_t> rows, columns;
  for (size_t loop : classes[kBatch]) {
    bool left = getConstant(tensors[0].strides[loop]) != 0;
    bool right = getConstant(tensors[1].strides[loop]) != 0;
    (left == right ? own : left ? rows : columns).push_back(loop);
  }
  classes[kBatch] = own;
  classes[kRow].insert(classes[kRow].begin(), rows.begin(), rows.end());
  classes[kColumn].insert(classes[kColumn].begin(), columns.begin(),
                          columns.end());
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
  moveRepeatedBatches();
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
  auto kind = view.sums == ProductSums::lhs ? format::StepKind::sum_lhs
                                            : format::StepKind::sum_rhs;
  work.steps.push_back(
      {kind, 1, makeVector(kind, work, sums, getElementTypeOrSelf(sums))});
}

std::optional<LibraryWork> ProductDescriber::describe(ArrayRef<Value> results) {
  SmallVector<Value> products(llvm::make_filter_range(
      results, [&](Value result) { return !isDepthSum(result); }));
  std::optional<Epilogue> epilogue = match(products);
  if (!epilogue || !traceOperands() || !traceEpilogue(*epilogue) ||
      !arrangeLoops())
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
  auto product = dyn_cast<ProductOpInterface>(anchor);
  auto kernel = dyn_cast<KernelOpInterface>(anchor);
  if (!product || !kernel || kernel.getKernelKind() != KernelKind::contraction)
    return std::nullopt;
  return ProductDescriber(product, isInput).describe(results);
}

} // namespace tcc::fusion
