#include "frontends/Einsum.h"
#include "frontends/onnx/Activations.h"
#include "frontends/onnx/Ops.h"

using namespace mlir;

namespace tcc::onnx_import {

static void importEinsum(Node &node) {
  Value y =
      emitEinsum(node, node.stringAttr("equation", ""), node.inputsFrom(0));
  if (y)
    node.setResult(0, y);
}

static void importMatMul(Node &node) {
  node.setResult(0, node.product(node.input(0), node.input(1)));
}

/// alpha a b + beta c
static Value emitGemm(Node &node) {
  Value a = node.input(0), b = node.input(1);
  double alpha = node.floatAttr("alpha", 1), beta = node.floatAttr("beta", 1);
  Value result = node.matmul(a, b, node.intAttr("transA", 0) != 0,
                             node.intAttr("transB", 0) != 0);
  if (!result)
    return nullptr;
  if (node.rank(result) != 2)
    return node.fail("operands of rank 2 are expected");
  if (alpha != 1)
    result = node.mul(result, node.constantLike(alpha, result));
  if (node.hasInput(2)) {
    Value c = node.input(2);
    if (beta != 1)
      c = node.mul(c, node.constantLike(beta, c));
    result = node.add(result, c);
  }
  return result;
}

static void importGemm(Node &node) { node.setResult(0, emitGemm(node)); }

// --- What onnxruntime fuses --------------------------------------------------

/// A factor of a FusedMatMul as a matrix product reads it. `batchName` moves
/// the first axis behind the batches, `name` then swaps the last two.
static Value readFactor(Node &node, int64_t i, StringRef name,
                        StringRef batchName) {
  Value x = node.input(i);
  bool isSwapped = node.intAttr(name, 0) != 0;
  bool isMoved = node.intAttr(batchName, 0) != 0;
  int64_t rank = node.rank(x);
  // A vector has nothing to transpose.
  if (!x || rank < 2 || (!isSwapped && !isMoved))
    return x;
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (isMoved)
    std::rotate(order.begin(), order.begin() + 1, order.end() - 1);
  if (isSwapped)
    std::swap(order[rank - 2], order[rank - 1]);
  return node.transpose(x, order);
}

static void importFusedMatMul(Node &node) {
  Value result = node.product(readFactor(node, 0, "transA", "transBatchA"),
                              readFactor(node, 1, "transB", "transBatchB"));
  double alpha = node.floatAttr("alpha", 1);
  if (alpha != 1)
    result = node.mul(result, node.constantLike(alpha, result));
  node.setResult(0, result);
}

static void importFusedGemm(Node &node) {
  SmallVector<double> parameters;
  if (!node.findAttr("activation_alpha") &&
      (node.findAttr("activation_beta") || node.findAttr("activation_gamma")))
    return (void)node.fail("attribute 'activation_alpha' is missing");
  for (StringRef name :
       {"activation_alpha", "activation_beta", "activation_gamma"})
    if (node.findAttr(name))
      parameters.push_back(node.floatAttr(name, 0));
  node.setResult(0, applyFusedActivation(node, parameters, emitGemm(node)));
}

// --- Determinant -------------------------------------------------------------

/// One step of Gauss' elimination with the largest pivot of column k: the next
/// matrices [batch, n, n], and the determinant's factors so far [batch].
static SmallVector<Value> eliminate(Node &node, Value k, Value matrices,
                                    Value product) {
  graph::Extents extents = node.extents(matrices);
  Type index = node.elementType(k);
  Value rows = node.iota({node.getSizes().constant(1), extents[1]}, 1, index);
  Value column = node.sliceAt(matrices, 2, k);
  Value isLeft = node.compare(graph::CompareKind::ge, rows, k);
  Value sizes = node.select(isLeft, node.create<graph::AbsOp>(column),
                            node.constantLike(-1, column));
  auto kind =
      graph::ReduceKindAttr::get(node.getContext(), graph::ReduceKind::max);
  Value place = node.unsqueeze(
      node.create<graph::ArgReduceOp>(
          sizes, {node.attr("kind", kind), node.attr("axis", 1L)}),
      {1}); // [batch, 1]
  // Row k and the pivot's change places.
  Value own = node.unsqueeze(node.sliceAt(matrices, 1, k), {1});
  if (!own || !place)
    return {};
  Value pivotRow = node.create<graph::GatherElementsOp>(
      {matrices, node.broadcast(node.unsqueeze(place, {2}), node.extents(own))},
      {node.attr("axis", 1L)});
  auto isRow = [&](Value position) {
    return node.unsqueeze(node.compare(graph::CompareKind::eq, rows, position),
                          {2});
  };
  Value swapped = node.select(isRow(place), own, matrices);
  swapped = node.select(isRow(k), pivotRow, swapped);
  Value pivot = node.sliceAt(pivotRow, 2, k); // [batch, 1]
  Value zero = node.constantLike(0, pivot), one = node.constantLike(1, pivot);
  Value isZero = node.compare(graph::CompareKind::eq, pivot, zero);
  Value isBelow = node.compare(graph::CompareKind::gt, rows, k);
  Value factors =
      node.div(node.sliceAt(swapped, 2, k), node.select(isZero, one, pivot));
  factors = node.unsqueeze(node.select(isBelow, factors, zero), {2});
  Value isInPlace = node.compare(graph::CompareKind::eq, place, k);
  Value sign = node.select(isInPlace, one, node.constantLike(-1, pivot));
  Value next = node.mul(product, node.squeeze(node.mul(sign, pivot), {1}));
  return {node.sub(swapped, node.mul(factors, pivotRow)), next};
}

static void importDet(Node &node) {
  Value x = node.input(0);
  int64_t rank = node.rank(x);
  if (!x || rank < 2 ||
      !graph::isEqual(graph::getExtent(x, rank - 1),
                      graph::getExtent(x, rank - 2)))
    return (void)node.fail("square matrices are expected");
  graph::Extents extents = node.extents(x);
  ArrayRef<AffineExpr> batch = ArrayRef(extents).drop_back(2);
  Size count = node.getSizes().product(batch);
  if (!count)
    return (void)node.fail("the input is too large");
  AffineExpr order = extents.back();
  Value matrices = node.reshape(x, {*count, order, order});
  Value ones = node.broadcast(node.constantLike(1, x), *count);
  auto results =
      node.loop({.trips = node.size(order), .known = order}, {matrices, ones},
                [&](Value k, ValueRange carried) -> SmallVector<Value> {
                  auto next = eliminate(node, k, carried[0], carried[1]);
                  Value goesOn =
                      node.constant(1, IntegerType::get(node.getContext(), 1));
                  next.insert(next.begin(), goesOn);
                  return next;
                });
  if (results.size() == 2)
    node.setResult(0, node.reshape(results[1], batch));
}

static constexpr int64_t last = kLastOpset;
static const OpRow rows[] = {
    {"Det", 11, last, importDet},
    {"Einsum", 12, last, importEinsum},
    {"FusedGemm", 1, 1, importFusedGemm, kOrtDomain},
    {"FusedMatMul", 1, 1, importFusedMatMul, kOrtDomain},
    {"Gemm", 7, last, importGemm},
    {"MatMul", 1, last, importMatMul},
};

ArrayRef<OpRow> getContractionOps() { return rows; }

} // namespace tcc::onnx_import
