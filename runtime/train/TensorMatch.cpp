#include "runtime/train/TensorMatch.h"

#include "runtime/executor/Context.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

using namespace tcc;
using namespace tcc::runtime;
using format::VariableKind;

bool runtime::isOfModel(const format::Variable &variable) {
  return variable.kind() == VariableKind::parameter ||
         variable.kind() == VariableKind::buffer;
}

namespace {

/// What is wrong with a file, of each kind all names.
struct Problems {
  std::string missing, unexpected, wrong;

  static void add(std::string &list, const std::string &text) {
    list += concat(list.empty() ? "" : ", ", text);
  }
  bool empty() const {
    return missing.empty() && unexpected.empty() && wrong.empty();
  }
  std::string describe() const {
    std::string text;
    auto append = [&](const char *kind, const std::string &list) {
      if (!list.empty())
        text += concat(text.empty() ? "" : "; ", kind, ": ", list);
    };
    append("missing", missing);
    append("unexpected", unexpected);
    append("of another type", wrong);
    return text;
  }
};

} // namespace

static bool isConvertible(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64;
}

static std::string describeType(DType dtype, std::span<const int64_t> shape) {
  return concat(traitsOf(dtype).name, " ", formatShape(shape));
}

static bool fits(const Variables &variables, size_t index,
                 const StoredTensor &tensor, const MatchOptions &options) {
  DType dtype = variables.describe(index).dtype();
  bool isSame = dtype == tensor.dtype ||
                (options.convertsFloats && isConvertible(dtype) &&
                 isConvertible(tensor.dtype));
  return isSame && std::ranges::equal(variables.shape(index), tensor.shape);
}

Result<std::vector<TensorMatch>>
runtime::matchTensors(const Variables &variables,
                      std::span<const StoredTensor> tensors,
                      const std::string &path, const MatchOptions &options) {
  std::unordered_map<std::string_view, const StoredTensor *> byName;
  for (const StoredTensor &tensor : tensors)
    byName.emplace(tensor.name, &tensor);
  std::vector<TensorMatch> matches;
  Problems problems;
  for (size_t i = 0; i < variables.size(); ++i) {
    const format::Variable &variable = variables.describe(i);
    auto found = byName.find(variable.name()->string_view());
    if (found == byName.end() || !options.isAllowed(variable)) {
      if (options.isRequired(variable))
        Problems::add(problems.missing, variable.name()->str());
      continue;
    }
    const StoredTensor &tensor = *found->second;
    byName.erase(found);
    matches.push_back({i, &tensor});
    if (!fits(variables, i, tensor, options))
      Problems::add(
          problems.wrong,
          concat(tensor.name, " (", describeType(tensor.dtype, tensor.shape),
                 ", expected ",
                 describeType(variable.dtype(), variables.shape(i)), ")"));
  }
  for (const StoredTensor &tensor : tensors)
    if (byName.count(tensor.name))
      Problems::add(problems.unexpected, tensor.name);
  if (!problems.empty())
    return makeError(Code::Usage, "'", path,
                     "' does not fit the package: ", problems.describe());
  return matches;
}

/// Elements may lie unaligned in the file.
template <typename To, typename From>
static void convert(std::span<const std::byte> from, std::span<std::byte> to) {
  for (size_t i = 0; i < to.size() / sizeof(To); ++i) {
    From value;
    std::memcpy(&value, from.data() + i * sizeof(From), sizeof(From));
    To converted = static_cast<To>(value);
    std::memcpy(to.data() + i * sizeof(To), &converted, sizeof(To));
  }
}

Status runtime::copyTensors(Variables &variables,
                            std::span<const TensorMatch> matches) {
  std::vector<std::byte> converted;
  for (const TensorMatch &match : matches) {
    DType dtype = variables.describe(match.variable).dtype();
    std::span<const std::byte> bytes = match.tensor->bytes;
    if (dtype != match.tensor->dtype) {
      converted.resize(variables.byteCount(match.variable));
      if (dtype == DType::f64)
        convert<double, float>(bytes, converted);
      else
        convert<float, double>(bytes, converted);
      bytes = converted;
    }
    if (Status status = variables.write(match.variable, bytes); !status.ok())
      return status;
  }
  return Status();
}
