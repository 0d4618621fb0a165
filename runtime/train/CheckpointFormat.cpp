#include "runtime/train/CheckpointFormat.h"

#include "runtime/package/Digest.h"
#include "runtime/package/Names.h"
#include "runtime/train/CheckpointFiles.h"

#include <algorithm>
#include <map>

using namespace tcc;
using namespace tcc::runtime;
using nlohmann::ordered_json;

std::string runtime::fingerprintOf(const Variables &variables) {
  // By name: how they lie in memory is each package's own.
  std::map<std::string_view, std::string> lines;
  for (const LogicalTensor &tensor : variables.tensors()) {
    const format::Variable &variable = variables.describe(tensor.variable);
    if (!isState(variable))
      continue;
    std::string &text = lines[tensor.name];
    text = concat(tensor.name, "\n", traitsOf(tensor.dtype).name, "\n",
                  format::nameOf(variable.kind()), "\n", tensor.parameter);
    for (int64_t extent : tensor.shape)
      text += concat("\n", extent);
    text += "\n";
  }
  DigestStream digest;
  for (const auto &[name, text] : lines)
    digest.update(std::as_bytes(std::span(text)));
  return formatDigest(digest.finish());
}

ordered_json runtime::recipeOf(const TrainingSession &session) {
  ordered_json keys = ordered_json::object();
  const auto *recipe = session.executable().program().recipe();
  std::string_view text = recipe ? recipe->string_view() : "";
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    size_t at = std::min(line.find('='), line.size());
    keys[std::string(line.substr(0, at))] =
        line.substr(std::min(at + 1, line.size()));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return keys;
}

Status runtime::checkPlace(const TrainingSession &session, int64_t place) {
  if (place == 0 || (session.exactBatches() == 0 && session.rankCount() == 1))
    return Status();
  return makeError(Code::Usage, "a checkpoint of several ranks, or with ",
                   "parallel.exact, is of the time between two updates, and "
                   "this one comes after ",
                   place, " batches of one");
}
