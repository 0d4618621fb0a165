//===- Commands.h - All kinds of commands -----------------------*- C++ -*-===//
#ifndef TCC_DIALECTS_EXEC_COMMANDS_H
#define TCC_DIALECTS_EXEC_COMMANDS_H

#include "dialects/exec/ExecOps.h"

namespace tcc::exec {

namespace detail {
template <typename Visitor, typename Op, typename... Ops>
auto visitAs(mlir::Operation *op, Visitor &visitor) {
  if constexpr (sizeof...(Ops) == 0) {
    return visitor(mlir::cast<Op>(op));
  } else {
    if (auto command = mlir::dyn_cast<Op>(op))
      return visitor(command);
    return visitAs<Visitor, Ops...>(op, visitor);
  }
}
} // namespace detail

/// What `visitor` returns for the command `op`. A visitor has an overload for
/// each kind of command: one that forgets a kind does not compile.
template <typename Visitor>
auto visitCommand(mlir::Operation *op, Visitor visitor) {
  return detail::visitAs<Visitor,
#define GET_OP_LIST
#include "dialects/exec/Command.cpp.inc"
                         ,
#define GET_OP_LIST
#include "dialects/exec/Control.cpp.inc"
                         ,
#define GET_OP_LIST
#include "dialects/exec/Lane.cpp.inc"
                         ,
#define GET_OP_LIST
#include "dialects/exec/Collective.cpp.inc"
                         >(op, visitor);
}

} // namespace tcc::exec

#endif // TCC_DIALECTS_EXEC_COMMANDS_H
