//===- Prepare.h - Computes constants from model tensors --------*- C++ -*-===//
#ifndef TCC_RUNTIME_EXECUTOR_PREPARE_H
#define TCC_RUNTIME_EXECUTOR_PREPARE_H

#include "runtime/base/Memory.h"
#include "runtime/package/Image.h"
#include "runtime/package/Program_generated.h"

#include <span>

namespace tcc::runtime {

/// Runs the entry `prepare`: reads `modelTensors` (as Program.model_tensors)
/// and writes those of `constTensors` (as Program.weights) that are outputs of
/// the entry. A null model tensor reads as zeros; a null const tensor is
/// computed and dropped. Nothing is done if there is no such entry.
Status runPrepare(const format::Program &program,
                  std::span<const format::KernelFunction> kernels,
                  std::span<const void *const> modelTensors,
                  std::span<void *const> constTensors, int threads,
                  const Allocator &allocator);

/// The compiler's form: the program as built so far (checked here, digests and
/// sections not yet needed) and the ELF image of one of its variants.
Status runPrepare(std::span<const std::byte> program, size_t variant,
                  std::span<const std::byte> image,
                  std::span<const void *const> modelTensors,
                  std::span<void *const> constTensors, int threads);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_EXECUTOR_PREPARE_H
