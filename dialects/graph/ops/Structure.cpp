#include "dialects/graph/GraphOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tcc::graph;

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

LogicalResult SizeOp::inferReturnTypes(MLIRContext *context,
                                       std::optional<Location> loc,
                                       Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  if (adaptor.getExpression().getNumResults() != 1)
    return emitOptionalError(loc, "expected one size expression, found ",
                             adaptor.getExpression().getNumResults());
  types.push_back(RankedTensorType::get({}, IntegerType::get(context, 64)));
  return success();
}

Value SizeOp::emitElement(OpBuilder &builder, Location loc, ValueRange indices,
                          ElementSource &source) {
  Value size = source.size(builder, loc, getExpression().getResult(0));
  return builder.create<arith::IndexCastOp>(loc, builder.getI64Type(), size);
}

OpFoldResult SizeOp::fold(FoldAdaptor) {
  auto value = getConstant(getExpression().getResult(0));
  if (!value)
    return {};
  return DenseElementsAttr::get(cast<ShapedType>(getType()), *value);
}

SmallVector<unsigned> ReadSizeOp::getDefinedSymbols() {
  auto symbol = cast<AffineSymbolExpr>(getSymbol().getResult(0));
  return {symbol.getPosition()};
}

LogicalResult ReadSizeOp::verify() {
  auto type = cast<RankedTensorType>(getSize().getType());
  if (!type.getElementType().isInteger() || !type.hasStaticShape() ||
      type.getNumElements() != 1)
    return emitOpError("expected one integer, found ") << type;
  return verifyComputedSymbol(*this, getSymbol());
}

LogicalResult FusedOp::verify() {
  Block *body = &getBody().front();
  if (body->getArgumentTypes() != getInputs().getTypes())
    return emitOpError("body arguments do not have the types of the inputs");
  if (body->getTerminator()->getOperandTypes() != getResultTypes())
    return emitOpError("body does not yield the types of the results");
  return success();
}

void YieldOp::build(OpBuilder &, OperationState &) {}

#define GET_OP_CLASSES
#include "dialects/graph/Structure.cpp.inc"

void GraphDialect::addStructureOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/graph/Structure.cpp.inc"
      >();
}
