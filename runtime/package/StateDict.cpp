#include "runtime/package/StateDict.h"

#include "runtime/package/Reader.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

using namespace tcc;
using namespace tcc::runtime;

static constexpr std::string_view kMean = "running_mean";
static constexpr std::string_view kCounter = "num_batches_tracked";

Result<Aliases> runtime::parseAliases(std::string_view text) {
  Aliases aliases;
  if (text.empty())
    return aliases;
  auto object = nlohmann::json::parse(text, nullptr, false);
  bool isValid = object.is_object();
  for (const auto &[alias, name] : object.items()) {
    isValid = isValid && name.is_string() && name != alias;
    if (isValid)
      aliases.emplace(alias, name.get<std::string>());
  }
  if (!isValid)
    return makeError(Code::BadData, "the model's metadata '", kAliasesKey,
                     "' are no JSON object of names");
  return aliases;
}

Result<Aliases> runtime::findAliases(const format::Program &program) {
  const char *text = findMetadata(program, kAliasesKey);
  return parseAliases(text ? text : "");
}

/// Whether `name` is a batch norm's counter, with its running mean in `names`.
static bool isCounter(std::string_view name,
                      const std::set<std::string_view> &names) {
  if (!name.ends_with(kCounter))
    return false;
  name.remove_suffix(kCounter.size());
  return names.contains(concat(name, kMean));
}

Result<std::vector<StoredTensor>>
runtime::readStateDict(std::span<const StoredTensor> tensors,
                       const Aliases &aliases, const std::string &path) {
  std::set<std::string_view> names;
  for (const StoredTensor &tensor : tensors)
    names.insert(tensor.name);
  std::vector<StoredTensor> result;
  std::map<std::string, size_t> places;
  for (const StoredTensor &tensor : tensors) {
    if (isCounter(tensor.name, names))
      continue;
    auto alias = aliases.find(tensor.name);
    const std::string &name =
        alias == aliases.end() ? tensor.name : alias->second;
    auto [place, isNew] = places.emplace(name, result.size());
    if (isNew) {
      result.push_back(tensor);
      result.back().name = name;
    } else if (!std::ranges::equal(result[place->second].bytes, tensor.bytes)) {
      return makeError(Code::Usage, "'", path, "' has other values of '", name,
                       "' under another name of it");
    }
  }
  return result;
}

std::vector<StoredTensor>
runtime::makeStateDict(std::vector<StoredTensor> tensors,
                       const Aliases &aliases, const int64_t &batchCount) {
  std::set<std::string> names;
  for (const StoredTensor &tensor : tensors)
    names.insert(tensor.name);
  std::vector<StoredTensor> further;
  auto add = [&](StoredTensor tensor, const std::string &name) {
    tensor.name = name;
    if (names.insert(name).second)
      further.push_back(std::move(tensor));
  };
  for (const StoredTensor &tensor : tensors) {
    for (const auto &[alias, name] : aliases)
      if (name == tensor.name)
        add(tensor, alias);
    std::string_view prefix = tensor.name;
    if (!prefix.ends_with(kMean))
      continue;
    prefix.remove_suffix(kMean.size());
    add({"", DType::i64, {}, std::as_bytes(std::span(&batchCount, 1))},
        concat(prefix, kCounter));
  }
  std::ranges::move(further, std::back_inserter(tensors));
  return tensors;
}
