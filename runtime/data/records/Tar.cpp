#include "runtime/data/records/Tar.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

using namespace tcc;
using namespace tcc::runtime;

namespace {

/// A header, as it lies in the file.
struct Header {
  char name[100];
  char mode[8], owner[8], group[8];
  char size[12];
  char time[12];
  char checksum[8];
  char type;
  char link[100];
  char magic[8]; ///< and the version
  char ownerName[32], groupName[32], major[8], minor[8];
  char prefix[155];
  char padding[12];
};

constexpr uint64_t kBlock = 512;
static_assert(sizeof(Header) == kBlock);

/// Reads one tar file from the front.
class Reader {
public:
  explicit Reader(const SampleFile &file) : file(file) {}

  /// Whether there is one more; damage is an error.
  Result<bool> next(TarMember &member);

private:
  Status fail(std::string_view what) const {
    return makeError(Code::BadData, "'", file.path(), "' at byte ", at, ": ",
                     what);
  }
  Result<bool> readHeader();
  Result<std::string> readText(uint64_t size) const;
  Status readAttributes(uint64_t size);

  const SampleFile &file;
  uint64_t at = 0; ///< of the header
  Header header = {};
  /// The name and size of the next file, from headers before its own.
  std::string longName;
  std::optional<uint64_t> longSize;
};

} // namespace

/// What a header has in the place of a name.
static std::string_view textOf(const char *bytes, size_t size) {
  return {bytes, strnlen(bytes, size)};
}

/// Octal digits, or a number of bytes behind one that begins with a set bit.
static std::optional<uint64_t> readNumber(std::span<const char> field) {
  if (field[0] & 0x80) {
    uint64_t value = field[0] & 0x7f;
    for (char byte : field.subspan(1)) {
      if (value >> 55)
        return std::nullopt;
      value = value << 8 | static_cast<uint8_t>(byte);
    }
    return value;
  }
  std::string_view text = textOf(field.data(), field.size());
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  text = text.substr(0, text.find(' '));
  uint64_t value = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, 8);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

/// The sum is of the header with blanks in its own place.
static bool hasRightSum(const Header &header) {
  auto expected = readNumber(header.checksum);
  auto *bytes = reinterpret_cast<const uint8_t *>(&header);
  uint64_t sum = 0;
  for (size_t i = 0; i < sizeof(header); ++i)
    sum += bytes[i];
  for (char byte : header.checksum)
    sum += ' ' - static_cast<uint8_t>(byte);
  return expected == sum;
}

/// False at the end, which is a block of zeros.
Result<bool> Reader::readHeader() {
  if (at == file.size())
    return false;
  if (file.size() - at < kBlock)
    return fail("it ends within a header");
  auto bytes = std::as_writable_bytes(std::span(&header, 1));
  if (Status status = file.read(at, bytes); !status.ok())
    return status;
  if (std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte(); }))
    return false;
  if (!hasRightSum(header))
    return fail("there is no header of a tar file");
  return true;
}

/// Nobody has names of more bytes.
static constexpr uint64_t kLongestText = 1 << 16;

Result<std::string> Reader::readText(uint64_t size) const {
  if (size > kLongestText)
    return fail("its header has a longer text than names are");
  std::string text(size, '\0');
  if (Status status =
          file.read(at + kBlock, std::as_writable_bytes(std::span(text)));
      !status.ok())
    return status;
  return text;
}

/// Lines of "LENGTH KEY=VALUE\n", of which the length is that of all.
Status Reader::readAttributes(uint64_t size) {
  auto text = readText(size);
  if (!text.ok())
    return text.takeStatus();
  for (std::string_view rest = *text; !rest.empty() && rest[0] != '\0';) {
    size_t length = 0;
    auto [end, error] =
        std::from_chars(rest.data(), rest.data() + rest.size(), length);
    auto digits = static_cast<size_t>(end - rest.data());
    if (error != std::errc() || length > rest.size() || length < digits + 2)
      return fail("its extended header is damaged");
    std::string_view line = rest.substr(digits + 1, length - digits - 2);
    rest.remove_prefix(length);
    size_t equal = std::min(line.find('='), line.size());
    std::string_view key = line.substr(0, equal);
    std::string_view value = line.substr(std::min(equal + 1, line.size()));
    if (key == "path")
      longName = value;
    uint64_t number = 0;
    if (key != "size")
      continue;
    if (std::from_chars(value.data(), value.data() + value.size(), number).ec !=
        std::errc())
      return fail("its extended header is damaged");
    longSize = number;
  }
  return Status();
}

static bool isFile(char type) {
  return type == '0' || type == '\0' || type == '7';
}

Result<bool> Reader::next(TarMember &member) {
  for (;;) {
    auto has = readHeader();
    if (!has.ok() || !*has)
      return has;
    auto size = readNumber(header.size);
    if (longSize && isFile(header.type))
      size = longSize;
    // What comes after the header ends where the file does, or before it.
    if (!size || *size > file.size() - at - kBlock)
      return fail("its header says more bytes than there are");
    TarMember found = {longName, at + kBlock, *size};
    if (found.name.empty()) {
      bool isPosix = std::memcmp(header.magic, "ustar\0", 6) == 0;
      std::string_view prefix =
          isPosix ? textOf(header.prefix, sizeof(header.prefix)) : "";
      found.name = concat(prefix, prefix.empty() ? "" : "/",
                          textOf(header.name, sizeof(header.name)));
    }
    Status status;
    if (header.type == 'x') {
      status = readAttributes(*size);
    } else if (header.type == 'L') {
      auto text = readText(*size);
      if (!text.ok())
        return text.takeStatus();
      longName = text->c_str();
    } else if (header.type != 'g' && header.type != 'K') {
      longName.clear();
      longSize.reset();
    }
    if (!status.ok())
      return status;
    bool isWanted = isFile(header.type);
    uint64_t blocks = (*size + kBlock - 1) / kBlock;
    // The last one may lack its padding.
    at = std::min(file.size(), at + kBlock + blocks * kBlock);
    if (!isWanted)
      continue;
    member = std::move(found);
    return true;
  }
}

Status
runtime::visitTar(const SampleFile &file,
                  const std::function<Status(const TarMember &)> &visit) {
  Reader reader(file);
  TarMember member;
  for (;;) {
    auto has = reader.next(member);
    if (!has.ok())
      return has.takeStatus();
    if (!*has)
      return Status();
    if (Status status = visit(member); !status.ok())
      return status;
  }
}
