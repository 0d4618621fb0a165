//===- NonFinite.h - Where numbers stop being finite ------------*- C++ -*-===//
#ifndef TCC_RUNTIME_TRAIN_NONFINITE_H
#define TCC_RUNTIME_TRAIN_NONFINITE_H

#include <cstdint>
#include <string>
#include <vector>

namespace tcc::runtime {

/// The first tensor of a step that is not finite, all it was made of being so.
struct NonFinite {
  enum class Kind {
    input,    ///< of the batch
    variable, ///< before the step
    kernel,   ///< a result of one
  };
  Kind kind = Kind::kernel;
  std::string name;               ///< of the input, variable or kernel
  std::vector<std::string> nodes; ///< of the model, which the kernel computes
  uint64_t count = 0, of = 0;     ///< elements that are not finite, of how many
  bool isAnyNaN = false;          ///< else they are infinite
};

/// "input 'x', of which 3 of 96 elements are NaN".
std::string describe(const NonFinite &found);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_TRAIN_NONFINITE_H
