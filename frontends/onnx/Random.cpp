#include "frontends/onnx/GraphImporter.h"
#include "frontends/onnx/Ops.h"
#include "frontends/onnx/RuntimeShapes.h"

using namespace mlir;

namespace tcc::onnx_import {

/// The mask of a node that drops elements; a float before version 10.
static void setMask(Node &node, Value mask) {
  bool isFloat = node.getVersion() < 10;
  node.setResult(1, isFloat ? node.cast(mask, node.elementType(0)) : mask);
}

/// Whether the exporter meant training or not: the recipe decides.
static void importTrainedDropout(Node &node) {
  Value x = node.input(0);
  double p = node.getVersion() < 12 ? node.floatAttr("ratio", 0.5) : 0.5;
  if (node.getVersion() >= 12 && node.hasInput(1)) {
    auto ratio = node.requireFloats(1, "a ratio");
    p = ratio && ratio->size() == 1 ? ratio->front() : -1;
  }
  if (!(p >= 0 && p <= 1))
    return (void)node.fail("ratio must be a number from 0 to 1");
  std::string site = GraphImporter::getModulePath(node.getProto());
  if (site.empty())
    site = cast<NameLoc>(node.getLoc()).getName().str();
  Operation *op = node.createOp(
      graph::DropoutOp::getOperationName(), x,
      {node.attr("p", p),
       node.attr("site", StringAttr::get(node.getContext(), site)),
       node.attr("key", node.getImporter().numberDropout())});
  if (!op)
    return;
  node.setResult(0, op->getResult(0));
  if (node.hasOutput(1))
    setMask(node, op->getResult(1));
}

/// Fails a node, or a run, that would drop elements.
static void demandInference(Node &node) {
  auto mode = node.sizeInput(2, "training_mode");
  if (!mode)
    return;
  auto isZero = [&](Value x) {
    return node.compare(graph::CompareKind::eq, x, node.constantLike(0, x));
  };
  Value dropsNothing = isZero(node.scalar(*mode));
  if (node.hasInput(1)) {
    auto known = node.knownFloats(1);
    Value ratio = known && known->size() == 1
                      ? node.constant(known->front(), node.elementType(1))
                      : node.reshape(node.input(1), {});
    dropsNothing = node.create<graph::OrOp>({dropsNothing, isZero(ratio)});
  }
  demand(node, dropsNothing, "dropout in training mode", /*isSupported=*/false);
}

/// Inference drops nothing; the mask is then all true.
static void importDropout(Node &node) {
  if (node.getImporter().trains())
    return importTrainedDropout(node);
  bool isTraining = node.getVersion() >= 12 && node.hasInput(2);
  if (isTraining)
    demandInference(node);
  Tensor *x = node.tensor(0);
  if (!x)
    return;
  node.setTensor(0, x);
  if (!node.hasOutput(1))
    return;
  Value kept = node.constant(1, IntegerType::get(node.getContext(), 1));
  setMask(node, node.broadcast(kept, node.shape(0)));
}

static const OpRow rows[] = {
    {"Dropout", 7, kLastOpset, importDropout},
};

ArrayRef<OpRow> getRandomOps() { return rows; }

} // namespace tcc::onnx_import
