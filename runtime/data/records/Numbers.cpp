#include "runtime/data/records/Numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

using namespace tcc;
using namespace tcc::runtime;

static constexpr std::string_view kBlanks = " \t\r\n";
static constexpr std::string_view kBetween = " \t\r\n,[]";

bool NumberWriter::canWrite(DType dtype) {
  return traitsOf(dtype).kind != DTypeKind::Float || dtype == DType::f32 ||
         dtype == DType::f64;
}

/// Whether a type of so many bits has this number.
static bool isInRange(const DTypeTraits &type, int64_t value) {
  if (type.kind == DTypeKind::Boolean)
    return value == 0 || value == 1;
  int bits = int(type.bytes) * 8;
  if (type.kind == DTypeKind::Unsigned)
    return value >= 0 && (bits == 64 || value >> bits == 0);
  // A shift by all bits of a number has no meaning.
  int64_t rest = bits == 64 ? 0 : value >> (bits - 1);
  return rest == 0 || rest == -1;
}

/// False where the tensor's type has no such number.
template <typename T> bool NumberWriter::storeNumber(T value) {
  const DTypeTraits &type = traitsOf(tensor.dtype);
  if (type.kind == DTypeKind::Float) {
    auto narrow = float(value);
    auto wide = double(value);
    if (type.dtype == DType::f32)
      std::memcpy(to.data(), &narrow, sizeof(narrow));
    else
      std::memcpy(to.data(), &wide, sizeof(wide));
  } else if constexpr (std::is_integral_v<T>) {
    if (!isInRange(type, value))
      return false;
    std::memcpy(to.data(), &value, type.bytes);
  } else {
    return false;
  }
  to = to.subspan(type.bytes);
  return true;
}

/// False where there is no such place.
bool NumberWriter::storeOneHot(int64_t place) {
  const DTypeTraits &type = traitsOf(tensor.dtype);
  auto count = int64_t(to.size() / type.bytes);
  for (int64_t i = 0; i < count; ++i)
    storeNumber(int64_t(i == place));
  return place >= 0 && place < count;
}

template <typename T> bool NumberWriter::store(T value) {
  if (!transforms.isOneHot)
    return storeNumber(value);
  if constexpr (std::is_integral_v<T>)
    return storeOneHot(value);
  else
    return false;
}

Status NumberWriter::refuse(std::string_view word) const {
  const DTypeTraits &type = traitsOf(tensor.dtype);
  word = word.substr(0, 32);
  return transforms.isOneHot
             ? makeError(Code::BadData, "'", word, "' is none of the ",
                         tensor.sampleBytes() / type.bytes, " places of '",
                         tensor.name, "'")
             : makeError(Code::BadData, "'", word, "' is no number of ",
                         type.name);
}

static Status refuseMore(const BatchTensor &tensor) {
  return makeError(Code::BadData, "there are more numbers than a sample of '",
                   tensor.name, "' has");
}

template <typename T> static std::optional<T> parse(std::string_view word) {
  T value{};
  const char *end = word.data() + word.size();
  auto [rest, error] = std::from_chars(word.data(), end, value);
  return error == std::errc() && rest == end ? std::optional(value)
                                             : std::nullopt;
}

std::optional<Status> NumberWriter::begin() {
  if (passed > 0) {
    --passed;
    return Status();
  }
  if (!to.empty())
    return std::nullopt;
  return transforms.isTruncated ? Status() : refuseMore(tensor);
}

Status NumberWriter::addWord(std::string_view word) {
  if (auto status = begin())
    return std::move(*status);
  bool isStored = false;
  if (auto integer = parse<int64_t>(word))
    isStored = store(*integer);
  // Rounded once, to the type that is stored.
  else if (auto narrow = parse<float>(word);
           narrow && tensor.dtype == DType::f32)
    isStored = store(*narrow);
  else if (auto real = parse<double>(word))
    isStored = store(*real);
  else if (tensor.dtype == DType::boolean &&
           (word == "true" || word == "false"))
    isStored = store(int64_t(word == "true"));
  return isStored ? Status() : refuse(word);
}

Status NumberWriter::addClass(std::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of(kBlanks), name.size()));
  name = name.substr(0, name.find_last_not_of(kBlanks) + 1);
  auto found = std::ranges::find(tensor.classes, name);
  if (found == tensor.classes.end())
    return makeError(Code::BadData, "'", name.substr(0, 32),
                     "' is none of the classes of '", tensor.name, "'");
  if (auto status = begin())
    return std::move(*status);
  return store(int64_t(found - tensor.classes.begin())) ? Status()
                                                        : refuse(name);
}

Status NumberWriter::addBytes(std::string_view text) {
  for (char byte : text) {
    if (auto status = begin()) {
      if (!status->ok())
        return std::move(*status);
      continue;
    }
    auto value = int64_t(static_cast<unsigned char>(byte));
    if (!store(value))
      return refuse(std::to_string(value));
  }
  return Status();
}

/// Calls `visit` with each word until it fails.
template <typename Visit>
static Status visitWords(std::string_view text, Visit visit) {
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(kBetween), text.size()));
    if (text.empty())
      return Status();
    std::string_view word = text.substr(0, text.find_first_of(kBetween));
    if (Status status = visit(word); !status.ok())
      return status;
    text.remove_prefix(word.size());
  }
}

size_t runtime::countNumbers(std::string_view text) {
  size_t count = 0;
  (void)visitWords(text, [&](std::string_view) {
    ++count;
    return Status();
  });
  return count;
}

Status NumberWriter::addText(std::string_view text) {
  if (!tensor.classes.empty())
    return addClass(text);
  if (transforms.isBytes)
    return addBytes(text);
  bool isEmpty = true;
  Status status = visitWords(text, [&](std::string_view word) {
    isEmpty = false;
    return addWord(word);
  });
  return status.ok() && isEmpty ? refuse("") : std::move(status);
}

static int64_t loadInteger(const DTypeTraits &type, const std::byte *from) {
  uint64_t bits = 0;
  std::memcpy(&bits, from, type.bytes);
  unsigned unused = 64 - 8 * unsigned(type.bytes);
  if (type.kind != DTypeKind::Signed)
    return static_cast<int64_t>(bits);
  return static_cast<int64_t>(bits << unused) >> unused;
}

Status NumberWriter::add(DType dtype, std::span<const std::byte> bytes) {
  const DTypeTraits &type = traitsOf(dtype);
  if (bytes.empty() || bytes.size() % type.bytes != 0)
    return makeError(Code::BadData, "'", tensor.name, "' is read from ",
                     bytes.size(), " bytes, which are no numbers of ",
                     type.name);
  bool isReal = type.kind == DTypeKind::Float;
  for (; !bytes.empty(); bytes = bytes.subspan(type.bytes)) {
    if (auto status = begin()) {
      if (!status->ok())
        return std::move(*status);
      continue;
    }
    int64_t integer = isReal ? 0 : loadInteger(type, bytes.data());
    // What an i64 has not, has become negative.
    bool isLost = dtype == DType::u64 && integer < 0;
    bool isStored = isReal ? store(readScalar(dtype, bytes.data()))
                           : !isLost && store(integer);
    if (!isStored)
      return refuse(isReal ? "a float" : std::to_string(integer));
  }
  return Status();
}

Status NumberWriter::finish() {
  if (to.empty())
    return Status();
  if (!tensor.pad)
    return makeError(Code::BadData, "there are ",
                     to.size() / traitsOf(tensor.dtype).bytes,
                     " numbers fewer than a sample of '", tensor.name,
                     "' has, and data.pad does not say what follows");
  constexpr double kLargest = 0x1p53;
  bool isWhole = *tensor.pad == std::trunc(*tensor.pad) &&
                 std::abs(*tensor.pad) <= kLargest;
  while (!to.empty())
    if (!(isWhole ? store(int64_t(*tensor.pad)) : store(*tensor.pad)))
      return makeError(Code::Usage, "data.pad of '", tensor.name,
                       "' is no number of ", traitsOf(tensor.dtype).name);
  return Status();
}

void NumberWriter::writeMask(size_t ones) {
  for (size_t i = 0; !to.empty(); ++i)
    store(int64_t(i < ones));
}

//===----------------------------------------------------------------------===//
// Transforms
//===----------------------------------------------------------------------===//

static constexpr std::string_view kMask = "mask ";

bool NumberTransforms::isOne(std::string_view line) {
  return line == "bytes" || line == "truncate" || line == "one_hot" ||
         line.starts_with(kMask);
}

Result<NumberTransforms>
NumberTransforms::read(std::span<const std::string> lines) {
  NumberTransforms transforms;
  for (const std::string &line : lines) {
    if (!isOne(line))
      return makeError(
          Code::Usage, "'", line.substr(0, 64),
          "' is no transform of numbers, expected bytes, truncate, "
          "one_hot or mask NAME");
    transforms.isBytes |= line == "bytes";
    transforms.isTruncated |= line == "truncate";
    transforms.isOneHot |= line == "one_hot";
    if (line.starts_with(kMask))
      transforms.maskOf = line.substr(kMask.size());
  }
  if (!transforms.maskOf.empty() && lines.size() > 1)
    return Status(Code::Usage, "a mask has no other transforms");
  return transforms;
}
