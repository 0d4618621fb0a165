//===- Elements.h - Single elements of tensors ------------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_ELEMENTS_H
#define TCC_TOOLS_TCCRUN_ELEMENTS_H

#include "runtime/package/DType.h"

#include <string>

namespace tcc::tools {

/// Element `index` as a double; exact but for integers above 2^53.
double loadElement(runtime::DType dtype, const void *data, size_t index);

/// Shortest decimal form; integers exactly.
std::string formatElement(runtime::DType dtype, const void *data, size_t index);

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_ELEMENTS_H
