#include "runtime/package/ZipDirectory.h"

#include "runtime/base/PrintText.h"

#include <cstring>
#include <limits>
#include <optional>

using namespace tcc;
using namespace tcc::runtime;

// Lengths of the fixed parts of zip's records, and what they begin with.
static constexpr uint64_t kEndLength = 22, kEntryLength = 46;
static constexpr uint64_t kHeaderLength = 30, kLocatorLength = 20;
static constexpr uint64_t kLargeEndLength = 56, kMaxComment = 0xffff;
static constexpr uint32_t kEndMark = 0x06054b50, kEntryMark = 0x02014b50;
static constexpr uint32_t kHeaderMark = 0x04034b50, kLocatorMark = 0x07064b50;
static constexpr uint32_t kLargeEndMark = 0x06064b50;
static constexpr uint64_t kMaxEntries = 1 << 20;

using Bytes = std::span<const std::byte>;

/// Reads a number of the file, little-endian as this machine's are.
template <typename T> static T load(Bytes bytes, uint64_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

static uint64_t load16(Bytes bytes, uint64_t at) {
  return load<uint16_t>(bytes, at);
}
static uint64_t load32(Bytes bytes, uint64_t at) {
  return load<uint32_t>(bytes, at);
}

/// Whether `length` bytes from `offset` on lie in the file.
static bool fits(Bytes bytes, uint64_t offset, uint64_t length) {
  return offset <= bytes.size() && length <= bytes.size() - offset;
}

static std::string_view textOf(Bytes bytes) {
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

bool ZipDirectory::isOne(Bytes bytes) {
  return bytes.size() >= sizeof(kHeaderMark) && load32(bytes, 0) == kHeaderMark;
}

//===----------------------------------------------------------------------===//
// The directory
//===----------------------------------------------------------------------===//

static Status refuse() {
  return Status(Code::BadData, "its directory is malformed");
}

/// The values of a record that a 64-bit extension gives, in their order.
static bool readLarge(Bytes extra, std::initializer_list<uint64_t *> values) {
  constexpr uint64_t kHead = 4;
  while (extra.size() >= kHead) {
    uint64_t tag = load16(extra, 0), length = load16(extra, 2);
    extra = extra.subspan(kHead);
    if (length > extra.size())
      return false;
    Bytes field = extra.first(length);
    extra = extra.subspan(length);
    if (tag != 1)
      continue;
    for (uint64_t *value : values) {
      if (*value != std::numeric_limits<uint32_t>::max())
        continue;
      if (field.size() < sizeof(uint64_t))
        return false;
      *value = load<uint64_t>(field, 0);
      field = field.subspan(sizeof(uint64_t));
    }
    return true;
  }
  return true; // they are not so large
}

/// The bytes of an entry whose local header is at `header`.
static std::optional<Bytes> locate(Bytes file, std::string_view name,
                                   uint64_t header, uint64_t compressed) {
  if (!fits(file, header, kHeaderLength) || load32(file, header) != kHeaderMark)
    return std::nullopt;
  uint64_t length = load16(file, header + 26);
  uint64_t begin = header + kHeaderLength;
  uint64_t data = begin + length + load16(file, header + 28);
  bool hasName =
      fits(file, begin, length) && textOf(file.subspan(begin, length)) == name;
  if (!hasName || !fits(file, data, compressed))
    return std::nullopt;
  return file.subspan(data, compressed);
}

Status ZipDirectory::readEntry(Bytes file, uint64_t &offset, uint64_t end) {
  constexpr uint64_t kStored = 0, kDeflated = 8;
  if (offset > end || end - offset < kEntryLength)
    return refuse();
  Bytes record = file.subspan(offset, end - offset);
  uint64_t flags = load16(record, 8), method = load16(record, 10);
  uint64_t compressed = load32(record, 20), header = load32(record, 42);
  uint64_t name = load16(record, 28), extra = load16(record, 30);
  uint64_t length = kEntryLength + name + extra + load16(record, 32);
  if (load32(record, 0) != kEntryMark || length > record.size())
    return refuse();
  Entry entry;
  entry.checksum = uint32_t(load32(record, 16));
  entry.size = load32(record, 24);
  entry.name = textOf(record.subspan(kEntryLength, name));
  if (!readLarge(record.subspan(kEntryLength + name, extra),
                 {&entry.size, &compressed, &header}))
    return refuse();
  offset += length;
  if (entry.name.ends_with('/'))
    return Status(); // a folder
  if ((flags & 1) != 0 || (method != kStored && method != kDeflated))
    return makeError(Code::BadData, "entry '", printText(entry.name),
                     "' is encrypted, or compressed in another way than by "
                     "deflate");
  entry.isCompressed = method == kDeflated;
  if (!entry.isCompressed && compressed != entry.size)
    return refuse();
  auto stored = locate(file, entry.name, header, compressed);
  if (!stored)
    return makeError(Code::BadData, "entry '", printText(entry.name),
                     "' does not lie in the file");
  entry.stored = *stored;
  positions.try_emplace(entry.name, all.size());
  all.push_back(entry);
  return Status();
}

/// Where the record of the end is, which a comment may follow.
static std::optional<uint64_t> findEnd(Bytes file) {
  for (uint64_t back = kEndLength;
       back <= file.size() && back <= kEndLength + kMaxComment; ++back)
    if (load32(file, file.size() - back) == kEndMark)
      return file.size() - back;
  return std::nullopt;
}

Status ZipDirectory::readAll(Bytes file) {
  auto end = findEnd(file);
  if (!end)
    return Status(Code::BadData, "is not a whole zip file");
  uint64_t count = load16(file, *end + 10), size = load32(file, *end + 12),
           offset = load32(file, *end + 16);
  bool isLarge = count == std::numeric_limits<uint16_t>::max() ||
                 size == std::numeric_limits<uint32_t>::max() ||
                 offset == std::numeric_limits<uint32_t>::max();
  if (isLarge && *end >= kLocatorLength &&
      load32(file, *end - kLocatorLength) == kLocatorMark) {
    auto at = load<uint64_t>(file, *end - kLocatorLength + 8);
    if (!fits(file, at, kLargeEndLength) || load32(file, at) != kLargeEndMark)
      return refuse();
    count = load<uint64_t>(file, at + 32);
    size = load<uint64_t>(file, at + 40);
    offset = load<uint64_t>(file, at + 48);
  }
  if (!fits(file, offset, size) || count > kMaxEntries)
    return refuse();
  uint64_t last = offset + size;
  for (uint64_t i = 0; i < count; ++i)
    if (Status status = readEntry(file, offset, last); !status.ok())
      return status;
  return Status();
}

Result<ZipDirectory> ZipDirectory::read(Bytes bytes) {
  ZipDirectory directory;
  if (Status status = directory.readAll(bytes); !status.ok())
    return status;
  return directory;
}

const ZipDirectory::Entry *ZipDirectory::find(std::string_view name) const {
  auto found = positions.find(name);
  return found == positions.end() ? nullptr : &all[found->second];
}
