#include "runtime/data/records/Numbers.h"

#include <algorithm>
#include <charconv>
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
template <typename T> bool NumberWriter::store(T value) {
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

static Status refuse(const BatchTensor &tensor, std::string_view word) {
  return makeError(Code::BadData, "'", word.substr(0, 32), "' is no number of ",
                   traitsOf(tensor.dtype).name);
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

Status NumberWriter::addWord(std::string_view word) {
  if (to.empty())
    return refuseMore(tensor);
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
  return isStored ? Status() : refuse(tensor, word);
}

Status NumberWriter::addText(std::string_view text) {
  if (!tensor.classes.empty()) {
    text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
    text = text.substr(0, text.find_last_not_of(kBlanks) + 1);
    auto found = std::ranges::find(tensor.classes, text);
    if (found == tensor.classes.end())
      return makeError(Code::BadData, "'", text.substr(0, 32),
                       "' is none of the classes of '", tensor.name, "'");
    if (to.empty())
      return refuseMore(tensor);
    return store(int64_t(found - tensor.classes.begin()))
               ? Status()
               : refuse(tensor, text);
  }
  bool isEmpty = true;
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(kBetween), text.size()));
    if (text.empty())
      return isEmpty ? refuse(tensor, text) : Status();
    std::string_view word = text.substr(0, text.find_first_of(kBetween));
    if (Status status = addWord(word); !status.ok())
      return status;
    text.remove_prefix(word.size());
    isEmpty = false;
  }
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
    if (to.empty())
      return refuseMore(tensor);
    int64_t integer = isReal ? 0 : loadInteger(type, bytes.data());
    // What an i64 has not, has become negative.
    bool isLost = dtype == DType::u64 && integer < 0;
    bool isStored = isReal ? store(readScalar(dtype, bytes.data()))
                           : !isLost && store(integer);
    if (!isStored)
      return refuse(tensor, isReal ? "a float" : std::to_string(integer));
  }
  return Status();
}

Status NumberWriter::finish() const {
  if (to.empty())
    return Status();
  return makeError(Code::BadData, "there are ",
                   to.size() / traitsOf(tensor.dtype).bytes,
                   " numbers fewer than a sample of '", tensor.name, "' has");
}
