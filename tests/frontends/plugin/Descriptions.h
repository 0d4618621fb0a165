//===- Descriptions.h - What plugins of tests are made of -------*- C++ -*-===//
#ifndef TCC_TESTS_FRONTENDS_PLUGIN_DESCRIPTIONS_H
#define TCC_TESTS_FRONTENDS_PLUGIN_DESCRIPTIONS_H

#include "tcc/op.h"

/// A kernel of one task for CPUs; `code` outlives it.
inline tcc_op_kernel_v1 makeKernel(const char *types, const char *symbol,
                                   const tcc_op_code_v1 &code) {
  tcc_op_kernel_v1 kernel = {};
  kernel.bytes_of_this = sizeof(kernel);
  kernel.target = "cpu";
  kernel.types = types;
  kernel.symbol = symbol;
  kernel.tasks = "1";
  kernel.codes = &code;
  kernel.code_count = 1;
  return kernel;
}

/// An operator whose result has the shape of x, with `kernel` if it is not
/// null, which outlives it.
inline tcc_op_v1 makeOperator(const char *schema,
                              const tcc_op_kernel_v1 *kernel = nullptr) {
  tcc_op_v1 op = {};
  op.bytes_of_this = sizeof(op);
  op.since = 1;
  op.schema = schema;
  op.shapes = "x.shape";
  op.kernels = kernel;
  op.kernel_count = kernel != nullptr;
  return op;
}

#endif // TCC_TESTS_FRONTENDS_PLUGIN_DESCRIPTIONS_H
