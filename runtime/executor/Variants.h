//===- Variants.h - Entry points at several sizes ---------------*- C++ -*-===//
#ifndef TCC_RUNTIME_EXECUTOR_VARIANTS_H
#define TCC_RUNTIME_EXECUTOR_VARIANTS_H

#include "runtime/executor/Context.h"

namespace tcc::runtime {

/// The entries of a kind, in the order of their variants.
std::vector<const format::Entry *> listVariants(const format::Program &program,
                                                format::EntryKind kind);

/// Whether a tensor of this shape may be the input, by its fixed dimensions.
bool takes(const format::TensorSpec &input, std::span<const int64_t> shape);

/// The one of `variants`, at least one of a kind, whose inputs take tensors of
/// these shapes; where there is one alone, that one, whatever the shapes.
/// Code::Usage, with the shapes that there are, where none takes them.
Result<const format::Entry *>
chooseVariant(std::span<const format::Entry *const> variants,
              std::span<const TensorView> tensors);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_EXECUTOR_VARIANTS_H
