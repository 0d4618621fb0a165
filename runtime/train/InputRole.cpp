#include "runtime/train/InputRole.h"

#include "runtime/train/CheckpointFormat.h"

using namespace tcc;
using namespace tcc::runtime;

InputRole runtime::inputRoleOf(const TrainingSession &session,
                               std::string_view input) {
  const auto recipe = recipeOf(session);
  InputRole role;
  role.isTarget = input == recipe.value("loss.target", "");
  if (recipe.value("loss.kind", "") == "causal_lm") {
    bool isShifted = recipe.value("loss.shift", "") != "false";
    role.tokensAhead = role.isTarget && !isShifted ? 1 : 0;
  }
  return role;
}
