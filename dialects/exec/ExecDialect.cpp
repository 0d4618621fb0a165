#include "dialects/exec/ExecDialect.h"
#include "dialects/exec/ExecOps.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "dialects/exec/ExecDialect.cpp.inc"
#include "dialects/exec/ExecEnums.cpp.inc"
#include "dialects/exec/ExecInterfaces.cpp.inc"

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
