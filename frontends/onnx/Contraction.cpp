#include "frontends/onnx/Contraction.h"
#include "frontends/onnx/Ops.h"

using namespace mlir;

namespace tcc::onnx_import {

Value emitMatMul(Node &node, Value lhs, Value rhs) {
  if (!lhs || !rhs)
    return nullptr;
  int64_t lhsRank = node.rank(lhs), rhsRank = node.rank(rhs);
  if (lhsRank == 0 || rhsRank == 0)
    return node.fail("an operand is a scalar");
  if (lhsRank == 1)
    lhs = node.unsqueeze(lhs, {0});
  if (rhsRank == 1)
    rhs = node.unsqueeze(rhs, {1});
  Value product = node.matmul(lhs, rhs);
  int64_t rank = node.rank(product);
  SmallVector<int64_t> dropped;
  if (lhsRank == 1)
    dropped.push_back(rank - 2);
  if (rhsRank == 1)
    dropped.push_back(rank - 1);
  return dropped.empty() ? product : node.squeeze(product, dropped);
}

static void importMatMul(Node &node) {
  node.setResult(0, emitMatMul(node, node.input(0), node.input(1)));
}

/// alpha a b + beta c
static void importGemm(Node &node) {
  Value a = node.input(0), b = node.input(1);
  double alpha = node.floatAttr("alpha", 1), beta = node.floatAttr("beta", 1);
  Value result = node.matmul(a, b, node.intAttr("transA", 0) != 0,
                             node.intAttr("transB", 0) != 0);
  if (!result)
    return;
  if (node.rank(result) != 2)
    return (void)node.fail("operands of rank 2 are expected");
  if (alpha != 1)
    result = node.mul(result, node.constantLike(alpha, result));
  if (node.hasInput(2)) {
    Value c = node.input(2);
    if (beta != 1)
      c = node.mul(c, node.constantLike(beta, c));
    result = node.add(result, c);
  }
  node.setResult(0, result);
}

static constexpr int64_t last = kLastOpset;
static const OpRow rows[] = {
    {"Einsum", 12, last, importEinsum},
    {"Gemm", 7, last, importGemm},
    {"MatMul", 1, last, importMatMul},
};

ArrayRef<OpRow> getContractionOps() { return rows; }

} // namespace tcc::onnx_import
