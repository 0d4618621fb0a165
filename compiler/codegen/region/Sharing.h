//===- Sharing.h - Results in the place of inputs ---------------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_REGION_SHARING_H
#define TCC_COMPILER_CODEGEN_REGION_SHARING_H

#include "dialects/graph/GraphOps.h"

namespace tcc::codegen {

/// True if result `result` may lie in the buffer of input `input`: every
/// element of any result depends, of that input, on the element at the same
/// row-major position only, and that is read before it is overwritten.
bool canShareBuffer(graph::FusedOp fused, unsigned result, unsigned input);

} // namespace tcc::codegen

#endif // TCC_COMPILER_CODEGEN_REGION_SHARING_H
