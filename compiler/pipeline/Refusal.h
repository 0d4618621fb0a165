//===- Refusal.h - Why there is no program ----------------------*- C++ -*-===//
#ifndef TCC_COMPILER_PIPELINE_REFUSAL_H
#define TCC_COMPILER_PIPELINE_REFUSAL_H

#include "frontends/Problems.h"
#include "runtime/base/Status.h"

#include <string>
#include <vector>

namespace tcc {

/// What takes the place of a result that cannot be had.
struct Refusal {
  runtime::Code code = runtime::Code::Internal;
  std::vector<std::string> problems; ///< lines for the user
  /// After an internal error: the module that it happened on, as text.
  std::string reproducer;
};

/// The code of the problems' smallest class, or Internal without problems.
runtime::Code getCode(const Problems &problems);

Refusal makeRefusal(runtime::Code code, std::string problem);
Refusal makeRefusal(const runtime::Status &status);
Refusal makeRefusal(const Problems &problems);

} // namespace tcc

#endif // TCC_COMPILER_PIPELINE_REFUSAL_H
