// Running means of parameters in the place of these.

#include "runtime/train/Session.h"

using namespace tcc;
using namespace tcc::runtime;
using format::VariableKind;

/// Each mean with its parameter.
static Result<std::vector<std::pair<size_t, size_t>>>
pairMeans(const Variables &variables) {
  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t i = 0; i < variables.size(); ++i) {
    const format::Variable &mean = variables.describe(i);
    if (mean.kind() != VariableKind::ema)
      continue;
    std::string_view name =
        mean.parameter() ? mean.parameter()->string_view() : std::string_view();
    auto parameter = variables.find(name);
    if (mean.ranks() > 0 || !parameter ||
        variables.describe(*parameter).dtype() != mean.dtype())
      return makeError(Code::Usage, "'", mean.name()->string_view(),
                       "' is no mean that can take a parameter's place: ranks "
                       "divide it, or it has another type");
    pairs.emplace_back(i, *parameter);
  }
  if (pairs.empty())
    return makeError(Code::Usage,
                     "the package has no running means: set params.ema");
  return pairs;
}

Status TrainingSession::checkMeans() const {
  auto pairs = pairMeans(store);
  return pairs.ok() ? Status() : pairs.takeStatus();
}

Status TrainingSession::exchangeMeans() {
  auto pairs = pairMeans(store);
  if (!pairs.ok())
    return pairs.takeStatus();
  for (auto [mean, parameter] : *pairs)
    if (Status status = store.exchange(mean, parameter); !status.ok())
      return status;
  return Status();
}
