//===- VerifyMetrics.h - What evaluations say is whole ----------*- C++ -*-===//
#ifndef TCC_RUNTIME_PACKAGE_VERIFYMETRICS_H
#define TCC_RUNTIME_PACKAGE_VERIFYMETRICS_H

#include "runtime/base/Status.h"
#include "runtime/package/Program_generated.h"

namespace tcc::runtime {

/// Each metric has as many outputs of `eval` as its rule needs, of static
/// shapes that go together. `program` has passed the checks of its entries.
Status verifyMetrics(const format::Program &program);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_PACKAGE_VERIFYMETRICS_H
