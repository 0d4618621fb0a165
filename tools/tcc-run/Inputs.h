//===- Inputs.h - Loads and binds inputs ------------------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_INPUTS_H
#define TCC_TOOLS_TCCRUN_INPUTS_H

#include "tools/tcc-run/Session.h"

namespace tcc::tools {

/// Reads .npy, .npz (the array `name`) or .pb.
runtime::Result<runtime::Tensor> readTensorFile(const std::string &path,
                                                std::string_view name);

/// Reads DIR/STEM.npy or DIR/STEM.pb; nothing if there is neither.
runtime::Result<std::optional<runtime::Tensor>>
findTensorFile(const std::string &dir, const std::string &stem);

/// Reads what --input and --inputs-dir name, in this order of precedence.
runtime::Status readInputs(const InputOptions &options, Session &session);

/// Binds --dim, what was read, and --random-inputs.
runtime::Status bindInputs(const InputOptions &options, Session &session);

/// Random elements: floats in [0, 1), integers over the range that indexing
/// allows (else 0 or 1), booleans true. Depends on seed, `position` of the
/// input and place of the element only.
void fillRandom(runtime::Tensor &tensor, uint64_t seed, size_t position,
                const format::TensorSpec &spec);

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_INPUTS_H
