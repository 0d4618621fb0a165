#include "dialects/exec/ExecDialect.h"
#include "dialects/exec/ExecOps.h"

#include "dialects/graph/ParseName.h"
#include "runtime/package/LibraryRules.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "dialects/exec/ExecDialect.cpp.inc"
#include "dialects/exec/ExecEnums.cpp.inc"
#include "dialects/exec/ExecInterfaces.cpp.inc"

static FailureOr<tcc::format::StepKind> parseStepKind(AsmParser &parser) {
  return tcc::graph::parseName(parser,
                               ArrayRef(tcc::format::EnumValuesStepKind()));
}

static FailureOr<tcc::format::WorkKind> parseWorkKind(AsmParser &parser) {
  return tcc::graph::parseName(parser,
                               ArrayRef(tcc::format::EnumValuesWorkKind()));
}

#define GET_TYPEDEF_CLASSES
#include "dialects/exec/ExecTypes.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/exec/ExecAttributes.cpp.inc"

namespace tcc::exec {

void ExecDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/exec/ExecTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/exec/ExecAttributes.cpp.inc"
      >();
  addProgramOps();
  addBufferOps();
  addCommandOps();
  addControlOps();
  addLaneOps();
  addCollectiveOps();
}

//===----------------------------------------------------------------------===//
// Work of libraries
//===----------------------------------------------------------------------===//

LogicalResult OperandAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                  uint32_t, Type, AffineMap place) {
  if (place.getNumDims() > 0 || place.getNumResults() % 2 == 0)
    return emitError() << "an operand needs the sizes (offset, extents..., "
                          "strides...)";
  return success();
}

LogicalResult StepAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               format::StepKind kind, FloatAttr factor,
                               OperandAttr operand) {
  bool hasOperand = runtime::traitsOf(kind).form != runtime::OperandForm::none;
  bool isScale = kind == format::StepKind::scale;
  if (hasOperand != bool(operand))
    return emitError() << format::nameOf(kind)
                       << (hasOperand ? " needs an operand"
                                      : " has no operand");
  if (isScale != bool(factor))
    return emitError() << format::nameOf(kind)
                       << (isScale ? " needs a factor" : " has no factor");
  return success();
}

LogicalResult
LibraryWorkAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                        format::WorkKind kind, OperandAttr, OperandAttr,
                        OperandAttr, ArrayAttr steps, bool, WindowAttr window) {
  if (steps && !llvm::all_of(steps, llvm::IsaPred<StepAttr>))
    return emitError() << "steps are attributes #exec.step";
  bool isProduct = kind == format::WorkKind::product;
  if (isProduct == bool(window))
    return emitError() << format::nameOf(kind)
                       << (isProduct ? " has no window" : " needs a window");
  return success();
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

SetVector<Operation *> getCommands(Value buffer) {
  SetVector<Operation *> commands;
  SmallVector<Value> values = {buffer};
  while (!values.empty())
    for (Operation *user : values.pop_back_val().getUsers()) {
      if (auto view = dyn_cast<ViewOp>(user)) {
        values.push_back(view);
        continue;
      }
      commands.insert(user);
      if (auto start = dyn_cast<TokenOpInterface>(user))
        commands.insert(start.getToken().user_begin(),
                        start.getToken().user_end());
    }
  return commands;
}

BufferOp getRoot(Value buffer) {
  while (auto view = buffer.getDefiningOp<ViewOp>())
    buffer = view.getBase();
  return cast<BufferOp>(buffer.getDefiningOp());
}

bool isSizeMap(AffineMap map, unsigned count) {
  return map.getNumDims() == 0 && map.getNumResults() == count;
}

} // namespace tcc::exec
