//===- InputRole.h - What data an input takes -------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_TRAIN_INPUTROLE_H
#define TCC_RUNTIME_TRAIN_INPUTROLE_H

#include "runtime/train/Session.h"

#include <optional>

namespace tcc::runtime {

struct InputRole {
  bool isTarget = false; ///< the loss is of it
  /// How many tokens after the model's input this begins in a text, for a
  /// language model. Nothing where the loss is of another kind.
  std::optional<int64_t> tokensAhead;
  /// The class that the loss passes over, of a target of classes.
  std::optional<int64_t> ignoreIndex;
};

/// By the recipe, of an input of the session's steps.
InputRole inputRoleOf(const TrainingSession &session, std::string_view input);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_TRAIN_INPUTROLE_H
