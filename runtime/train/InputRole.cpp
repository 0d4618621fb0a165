#include "runtime/train/InputRole.h"

#include "runtime/train/CheckpointFormat.h"

#include <charconv>

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
  std::string ignored = recipe.value("loss.ignore_index", "");
  int64_t index = 0;
  auto [end, error] =
      std::from_chars(ignored.data(), ignored.data() + ignored.size(), index);
  if (role.isTarget && error == std::errc() && !ignored.empty())
    role.ignoreIndex = index;
  return role;
}
