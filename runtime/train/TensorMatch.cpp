#include "runtime/train/TensorMatch.h"

#include "runtime/executor/Context.h"

#include <algorithm>
#include <cmath>
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
  return traitsOf(dtype).kind == DTypeKind::Float;
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

namespace {

/// A float type of two bytes: the bits of its mantissa, and the exponent of its
/// least normal number.
struct NarrowFloat {
  int mantissa, leastExponent;
};

} // namespace

static NarrowFloat getNarrow(DType dtype) {
  return dtype == DType::bf16 ? NarrowFloat{7, -126} : NarrowFloat{10, -14};
}

static double widenFloat(uint16_t bits, NarrowFloat type) {
  int exponent = (bits & 0x7fff) >> type.mantissa;
  int mantissa = bits & ((1 << type.mantissa) - 1);
  int infinite = 0x7fff >> type.mantissa, hidden = 1 << type.mantissa;
  double value;
  if (exponent == infinite)
    value = mantissa ? NAN : INFINITY;
  else
    value = std::ldexp(exponent ? mantissa + hidden : mantissa,
                       std::max(exponent, 1) - 1 + type.leastExponent -
                           type.mantissa);
  return bits & 0x8000 ? -value : value;
}

/// To nearest, halves to even.
static uint16_t narrowFloat(double value, NarrowFloat type) {
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  uint16_t infinite = 0x7fff >> type.mantissa << type.mantissa;
  if (std::isnan(value))
    return sign | 0x7fff;
  int exponent = type.leastExponent;
  if (double magnitude = std::abs(value); magnitude > 0 && std::isfinite(value))
    exponent = std::max(exponent, std::ilogb(magnitude));
  // Of the next exponent if it is rounded up to that.
  double count =
      std::nearbyint(std::ldexp(std::abs(value), type.mantissa - exponent));
  double bits =
      count + std::ldexp(exponent - type.leastExponent, type.mantissa);
  return sign | (bits < infinite ? uint16_t(bits) : infinite);
}

/// Elements may lie unaligned in the file.
static double readElement(DType dtype, const std::byte *from) {
  auto read = [from](auto value) {
    std::memcpy(&value, from, sizeof(value));
    return value;
  };
  if (dtype == DType::f64)
    return read(double());
  if (dtype == DType::f32)
    return read(float());
  return widenFloat(read(uint16_t()), getNarrow(dtype));
}

static void writeElement(DType dtype, double value, std::byte *to) {
  auto write = [to](auto value) { std::memcpy(to, &value, sizeof(value)); };
  if (dtype == DType::f64)
    write(value);
  else if (dtype == DType::f32)
    write(static_cast<float>(value));
  else
    write(narrowFloat(value, getNarrow(dtype)));
}

static void convert(DType from, std::span<const std::byte> source, DType to,
                    std::span<std::byte> target) {
  size_t step = traitsOf(from).bytes, width = traitsOf(to).bytes;
  for (size_t i = 0; i < target.size() / width; ++i)
    writeElement(to, readElement(from, source.data() + i * step),
                 target.data() + i * width);
}

Status runtime::copyTensors(Variables &variables,
                            std::span<const TensorMatch> matches) {
  std::vector<std::byte> converted;
  for (const TensorMatch &match : matches) {
    DType dtype = variables.describe(match.variable).dtype();
    std::span<const std::byte> bytes = match.tensor->bytes;
    if (dtype != match.tensor->dtype) {
      converted.resize(variables.byteCount(match.variable));
      convert(match.tensor->dtype, bytes, dtype, converted);
      bytes = converted;
    }
    if (Status status = variables.write(match.variable, bytes); !status.ok())
      return status;
  }
  return Status();
}
