//===- Random.h - Dropouts --------------------------------------*- C++ -*-===//
#ifndef TCC_FRONTENDS_ATEN_RANDOM_H
#define TCC_FRONTENDS_ATEN_RANDOM_H

#include "frontends/aten/Call.h"

namespace tcc::aten {

/// Whether a place that drops elements with probability p is to be kept: in a
/// model that is to be trained. Fails for one that is malformed.
bool dropsIn(Call &call, double p);
mlir::Value emitDropout(Call &call, mlir::Value x, double p);

} // namespace tcc::aten

#endif // TCC_FRONTENDS_ATEN_RANDOM_H
