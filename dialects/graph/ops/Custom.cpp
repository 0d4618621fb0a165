#include "dialects/graph/ops/ControlGradients.h"

using namespace mlir;
using namespace tcc::graph;

static bool isFloat(Type type) {
  return isa<FloatType>(getElementTypeOrSelf(type));
}

static SmallVector<Type> keepFloats(TypeRange types) {
  SmallVector<Type> floats;
  llvm::copy_if(types, std::back_inserter(floats), isFloat);
  return floats;
}

/// Whether `region`, if there is one, goes from `from` to `to`.
static bool hasTypes(Region &region, TypeRange from, TypeRange to) {
  if (region.empty())
    return true;
  auto yield = region.hasOneBlock()
                   ? dyn_cast<YieldOp>(region.front().getTerminator())
                   : YieldOp();
  return yield && TypeRange(region.getArgumentTypes()) == from &&
         yield.getOperandTypes() == to;
}

LogicalResult CustomOp::verify() {
  if (!hasTypes(getBody(), getInputs().getTypes(), getResultTypes()))
    return emitOpError("body does not take its inputs and yield its results");
  SmallVector<Type> types(getInputs().getTypes());
  llvm::append_range(types, getResultTypes());
  llvm::append_range(types, keepFloats(getResultTypes()));
  if (!hasTypes(getGradient(), types, keepFloats(getInputs().getTypes())))
    return emitOpError("gradient does not take inputs, results and their "
                       "gradients and yield those of the inputs");
  ArrayAttr kernels = getKernelsAttr();
  if (kernels && !llvm::all_of(kernels, llvm::IsaPred<CustomKernelAttr>))
    return emitOpError("expected kernels, found ") << kernels;
  if (getFlops() && getFlops()->getNumResults() != 1)
    return emitOpError("expected one number of flops");
  return success();
}

bool CustomKernelAttr::isFinished() const {
  return llvm::all_of(getCodes().getAsRange<CustomCodeAttr>(),
                      [](CustomCodeAttr code) {
                        return code.getForm() == CodeForm::ptx ||
                               code.getForm() == CodeForm::cubin;
                      });
}

// --- Whole or in parts -------------------------------------------------------

KernelKind CustomOp::getKernelKind() { return KernelKind::irregular; }

CustomKernelAttr CustomOp::findKernel(StringRef target) {
  if (ArrayAttr kernels = getKernelsAttr())
    for (auto kernel : kernels.getAsRange<CustomKernelAttr>())
      if (kernel.getTarget() == target)
        return kernel;
  return {};
}

AffineExpr CustomOp::countFlops() {
  return getFlops() ? getFlops()->getResult(0)
                    : getNumElements(getExtents(getResult(0)), getContext());
}

bool CustomOp::hasDecomposition() { return !getBody().empty(); }

void CustomOp::keepWhole() {
  getBody().getBlocks().clear();
  getGradient().getBlocks().clear();
}

FailureOr<SmallVector<Value>> CustomOp::decompose(OpBuilder &builder) {
  if (getBody().empty())
    return failure();
  IRMapping mapping;
  mapping.map(getBody().getArguments(), getInputs());
  return cloneBody(builder, getBody().front(), mapping);
}

// --- Gradients ---------------------------------------------------------------

LogicalResult CustomOp::emitGradients(Gradients &gradients) {
  OpBuilder &builder = gradients.getBuilder();
  SmallVector<Value> results, seeds, inputs;
  for (Value result : getResults())
    if (isFloat(result.getType())) {
      results.push_back(result);
      seeds.push_back(gradients.get(result));
    }
  for (Value input : getInputs())
    if (isFloat(input.getType()))
      inputs.push_back(input);
  SmallVector<Value> found;
  if (!getGradient().empty()) {
    IRMapping mapping;
    SmallVector<Value> arguments(getInputs());
    llvm::append_range(arguments, getResults());
    llvm::append_range(arguments, seeds);
    mapping.map(getGradient().getArguments(), arguments);
    found = cloneBody(builder, getGradient().front(), mapping);
  } else if (!getBody().empty()) {
    FailureOr<SmallVector<Value>> again = decompose(builder);
    llvm::erase_if(*again, [](Value v) { return !isFloat(v.getType()); });
    if (failed(differentiate(builder, *again, seeds, inputs, found)))
      return failure();
  } else {
    return emitError("has no derivative: its plugin gives none for '")
           << getName() << "'";
  }
  for (auto [input, gradient] : llvm::zip_equal(inputs, found))
    gradients.add(input, gradient);
  return success();
}

#define GET_OP_CLASSES
#include "dialects/graph/Custom.cpp.inc"

void GraphDialect::addCustomOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/graph/Custom.cpp.inc"
      >();
}
