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

/// "f32 2x4", of a slice "f32 2x4 from 2x0 of 8x4".
static std::string describePart(DType dtype, std::span<const int64_t> shape,
                                const Slice &slice) {
  std::string type = describeType(dtype, shape);
  if (std::ranges::equal(shape, slice.shape))
    return type;
  return concat(type, " from ", formatShape(slice.offset), " of ",
                formatShape(slice.shape));
}

static Slice getSlice(const StoredTensor &tensor, const MatchOptions &options) {
  auto slice = options.slices.find(tensor.name);
  if (slice != options.slices.end())
    return slice->second;
  return {tensor.shape, std::vector<int64_t>(tensor.shape.size())};
}

/// Where in the tensor the variable's elements begin; nothing if it has not all
/// of them.
static std::optional<std::vector<int64_t>> findPart(const Variables &variables,
                                                    size_t index,
                                                    const StoredTensor &tensor,
                                                    const Slice &from) {
  Slice part = variables.slice(index);
  std::span<const int64_t> extents = variables.shape(index);
  if (from.shape != part.shape || from.offset.size() != extents.size() ||
      tensor.shape.size() != extents.size())
    return std::nullopt;
  std::vector<int64_t> begin;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    begin.push_back(part.offset[axis] - from.offset[axis]);
    if (begin[axis] < 0 || begin[axis] > tensor.shape[axis] - extents[axis])
      return std::nullopt;
  }
  return begin;
}

static bool fits(DType dtype, const StoredTensor &tensor,
                 const MatchOptions &options) {
  return dtype == tensor.dtype ||
         (options.convertsFloats && isConvertible(dtype) &&
          isConvertible(tensor.dtype));
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
    Slice slice = getSlice(tensor, options);
    auto begin = findPart(variables, i, tensor, slice);
    if (!begin || !fits(variable.dtype(), tensor, options))
      Problems::add(problems.wrong,
                    concat(tensor.name, " (",
                           describePart(tensor.dtype, tensor.shape, slice),
                           ", expected ",
                           describePart(variable.dtype(), variables.shape(i),
                                        variables.slice(i)),
                           ")"));
    matches.push_back({i, &tensor, begin.value_or(std::vector<int64_t>())});
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

/// The elements of `tensor` from `begin` on, of the extents.
static std::vector<std::byte> cut(const StoredTensor &tensor,
                                  std::span<const int64_t> begin,
                                  std::span<const int64_t> extents) {
  size_t step = traitsOf(tensor.dtype).bytes, rank = extents.size();
  std::vector<std::byte> part(*bytesOf(tensor.dtype, extents));
  std::vector<int64_t> at(rank);
  size_t row = extents.back() * step; // of the last axis: bytes in one piece
  for (size_t to = 0; to < part.size(); to += row) {
    size_t from = 0;
    for (size_t axis = 0; axis < rank; ++axis)
      from = from * tensor.shape[axis] + begin[axis] + at[axis];
    std::memcpy(part.data() + to, tensor.bytes.data() + from * step, row);
    for (size_t axis = rank - 1; axis-- > 0 && ++at[axis] == extents[axis];)
      at[axis] = 0;
  }
  return part;
}

Status runtime::copyTensors(Variables &variables,
                            std::span<const TensorMatch> matches) {
  std::vector<std::byte> part, converted;
  for (const TensorMatch &match : matches) {
    DType dtype = variables.describe(match.variable).dtype();
    std::span<const std::byte> bytes = match.tensor->bytes;
    std::span<const int64_t> extents = variables.shape(match.variable);
    if (!std::ranges::equal(match.tensor->shape, extents)) {
      part = cut(*match.tensor, match.begin, extents);
      bytes = part;
    }
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
