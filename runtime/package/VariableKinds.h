//===- VariableKinds.h - What kinds of variables have in common -*- C++ -*-===//
#ifndef TCC_RUNTIME_PACKAGE_VARIABLEKINDS_H
#define TCC_RUNTIME_PACKAGE_VARIABLEKINDS_H

#include "runtime/package/Names.h"

namespace tcc::format {

/// Whether a session sets all variables of the kind to zero before it runs
/// `init`, which writes those that begin otherwise: zeros take no memory until
/// a step uses them.
inline bool isCleared(VariableKind kind) {
  return kind == VariableKind::slot || kind == VariableKind::gradient ||
         kind == VariableKind::step || kind == VariableKind::partial;
}

} // namespace tcc::format

#endif // TCC_RUNTIME_PACKAGE_VARIABLEKINDS_H
