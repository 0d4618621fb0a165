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

std::vector<TensorSource>
runtime::makeSources(std::span<const StoredTensor> tensors) {
  std::vector<TensorSource> sources;
  for (const StoredTensor &tensor : tensors) {
    uint64_t count = tensor.bytes.size() / traitsOf(tensor.dtype).bytes;
    sources.push_back(
        {tensor.name, tensor.dtype, tensor.shape, {{0, count, tensor.bytes}}});
  }
  return sources;
}

std::vector<Overlap> runtime::findOverlaps(const Piece &piece,
                                           const TensorSource &source) {
  uint64_t end = piece.begin + piece.count;
  auto part = std::ranges::partition_point(source.parts, [&](const auto &p) {
    return p.begin + p.count <= piece.begin;
  });
  std::vector<Overlap> overlaps;
  for (; part != source.parts.end() && part->begin < end; ++part)
    overlaps.push_back({piece, *part, std::max(piece.begin, part->begin),
                        std::min(end, part->begin + part->count)});
  return overlaps;
}

static bool hasAll(const TensorSource &source, std::span<const Piece> pieces) {
  for (const Piece &piece : pieces) {
    uint64_t found = 0;
    for (const Overlap &overlap : findOverlaps(piece, source))
      found += overlap.end - overlap.begin;
    if (found < piece.count)
      return false;
  }
  return true;
}

static bool fits(const LogicalTensor &tensor, const TensorSource &source,
                 const MatchOptions &options) {
  bool isOfType = tensor.dtype == source.dtype ||
                  (options.convertsFloats && isConvertible(tensor.dtype) &&
                   isConvertible(source.dtype));
  return isOfType && std::ranges::equal(tensor.shape, source.shape);
}

/// By the tensors' positions.
static std::vector<std::vector<Piece>> sortPieces(const Variables &variables,
                                                  int rank) {
  std::vector<std::vector<Piece>> pieces(variables.tensors().size());
  for (const Piece &piece : variables.pieces(rank))
    pieces[piece.tensor].push_back(piece);
  return pieces;
}

namespace {

/// Pairs tensors until a name is left over, and notes what is wrong.
class Matcher {
public:
  Matcher(std::span<const TensorSource> sources, const MatchOptions &options)
      : options(options) {
    for (const TensorSource &source : sources)
      byName.emplace(source.name, &source);
  }

  void add(const LogicalTensor &tensor, const format::Variable &variable,
           std::vector<Piece> pieces) {
    auto found = byName.find(tensor.name);
    if (found == byName.end() || !options.isAllowed(variable)) {
      if (options.isRequired(variable))
        Problems::add(problems.missing, std::string(tensor.name));
      return;
    }
    const TensorSource &source = *found->second;
    byName.erase(found);
    if (!fits(tensor, source, options))
      Problems::add(
          problems.wrong,
          concat(tensor.name, " (", describeType(source.dtype, source.shape),
                 ", expected ", describeType(tensor.dtype, tensor.shape), ")"));
    else if (!hasAll(source, pieces))
      Problems::add(problems.missing, concat("a part of ", tensor.name));
    matches.push_back({&source, tensor.variable, std::move(pieces)});
  }

  Result<std::vector<TensorMatch>> finish(std::span<const TensorSource> sources,
                                          const std::string &path) {
    for (const TensorSource &source : sources)
      if (byName.count(source.name))
        Problems::add(problems.unexpected, source.name);
    if (!problems.empty())
      return makeError(Code::Usage, "'", path,
                       "' does not fit the package: ", problems.describe());
    return std::move(matches);
  }

private:
  const MatchOptions &options;
  std::unordered_map<std::string_view, const TensorSource *> byName;
  std::vector<TensorMatch> matches;
  Problems problems;
};

} // namespace

Result<std::vector<TensorMatch>>
runtime::matchTensors(const Variables &variables, int rank,
                      std::span<const TensorSource> sources,
                      const std::string &path, const MatchOptions &options) {
  Matcher matcher(sources, options);
  std::vector<std::vector<Piece>> pieces = sortPieces(variables, rank);
  for (size_t i = 0; i < pieces.size(); ++i) {
    const LogicalTensor &tensor = variables.tensors()[i];
    matcher.add(tensor, variables.describe(tensor.variable),
                std::move(pieces[i]));
  }
  return matcher.finish(sources, path);
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
  // A count that is rounded up to the next exponent carries into it below.
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

void runtime::convert(DType from, std::span<const std::byte> source, DType to,
                      std::span<std::byte> target) {
  if (from == to) {
    std::ranges::copy(source, target.begin());
    return;
  }
  size_t step = traitsOf(from).bytes, width = traitsOf(to).bytes;
  for (size_t i = 0; i < target.size() / width; ++i)
    writeElement(to, readElement(from, source.data() + i * step),
                 target.data() + i * width);
}

Status runtime::copyTensors(Variables &variables,
                            std::span<const TensorMatch> matches) {
  std::vector<std::byte> converted;
  auto copy = [&](const TensorMatch &match, const Overlap &from) {
    DType dtype = variables.describe(match.variable).dtype();
    size_t step = traitsOf(match.source->dtype).bytes;
    size_t width = traitsOf(dtype).bytes;
    uint64_t count = from.end - from.begin;
    uint64_t at = from.piece.at + from.begin - from.piece.begin;
    std::span<const std::byte> bytes = from.part.bytes.subspan(
        (from.begin - from.part.begin) * step, count * step);
    if (dtype != match.source->dtype) {
      converted.resize(count * width);
      convert(match.source->dtype, bytes, dtype, converted);
      bytes = converted;
    }
    return variables.write(match.variable, at * width, bytes);
  };
  for (const TensorMatch &match : matches)
    for (const Piece &piece : match.pieces)
      for (const Overlap &overlap : findOverlaps(piece, *match.source))
        if (Status status = copy(match, overlap); !status.ok())
          return status;
  return Status();
}
