#include "frontends/Archive.h"

#include "llvm/Support/Endian.h"
#include <zlib.h>

namespace tcc {

using llvm::ArrayRef;
using llvm::StringRef;

// Lengths of the fixed parts of zip's records, and what they begin with.
constexpr uint64_t kEndLength = 22, kEntryLength = 46, kHeaderLength = 30;
constexpr uint64_t kLocatorLength = 20, kLargeEndLength = 56;
constexpr uint32_t kEndMark = 0x06054b50, kEntryMark = 0x02014b50;
constexpr uint32_t kHeaderMark = 0x04034b50, kLocatorMark = 0x07064b50;
constexpr uint32_t kLargeEndMark = 0x06064b50;
constexpr uint64_t kMaxText = uint64_t(256) << 20;
constexpr uint64_t kMaxEntries = 1 << 20;
/// A small text may compress well, a larger one as code does.
constexpr uint64_t kMaxRatio = 200, kSmallText = 1 << 20;

static uint64_t get16(const char *p) {
  return llvm::support::endian::read16le(p);
}
static uint64_t get32(const char *p) {
  return llvm::support::endian::read32le(p);
}
static uint64_t get64(const char *p) {
  return llvm::support::endian::read64le(p);
}

bool Archive::isArchive(const MappedFile &file) {
  return file.bytes.size() >= 4 && get32(file.bytes.data()) == kHeaderMark;
}

/// True if `length` bytes from `offset` on lie in the file.
static bool fits(ArrayRef<char> bytes, uint64_t offset, uint64_t length) {
  return offset <= bytes.size() && length <= bytes.size() - offset;
}

// --- The directory -----------------------------------------------------------

/// The values of a record that a 64-bit extension gives, in their order.
static bool readLarge(StringRef extra, llvm::ArrayRef<uint64_t *> values) {
  while (extra.size() >= 4) {
    uint64_t tag = get16(extra.data()), length = get16(extra.data() + 2);
    extra = extra.drop_front(4);
    if (length > extra.size())
      return false;
    StringRef field = extra.take_front(length);
    extra = extra.drop_front(length);
    if (tag != 1)
      continue;
    for (uint64_t *value : values) {
      if (*value != UINT32_MAX)
        continue;
      if (field.size() < 8)
        return false;
      *value = get64(field.data());
      field = field.drop_front(8);
    }
    return true;
  }
  return true; // they are not so large
}

bool Archive::locate(Entry &entry, uint64_t header, uint64_t compressed,
                     std::string &error) {
  error = "entry '" + entry.name.str() + "' does not lie in the file";
  if (!fits(file.bytes, header, kHeaderLength))
    return false;
  const char *local = file.bytes.data() + header;
  uint64_t name = get16(local + 26), extra = get16(local + 28);
  uint64_t data = header + kHeaderLength + name + extra;
  if (get32(local) != kHeaderMark || !fits(file.bytes, data, compressed))
    return false;
  bool hasName = name == entry.name.size() &&
                 StringRef(local + kHeaderLength, name) == entry.name;
  if (!hasName)
    return false;
  entry.stored = file.bytes.slice(data, compressed);
  return true;
}

bool Archive::readEntry(uint64_t &offset, uint64_t end, std::string &error) {
  error = "its directory is malformed";
  if (offset > end || end - offset < kEntryLength)
    return false;
  const char *record = file.bytes.data() + offset;
  uint64_t flags = get16(record + 8), method = get16(record + 10);
  uint64_t compressed = get32(record + 20), header = get32(record + 42);
  uint64_t name = get16(record + 28), extra = get16(record + 30),
           comment = get16(record + 32);
  Entry entry;
  entry.checksum = get32(record + 16);
  entry.size = get32(record + 24);
  uint64_t length = kEntryLength + name + extra + comment;
  if (get32(record) != kEntryMark || length > end - offset)
    return false;
  entry.name = StringRef(record + kEntryLength, name);
  StringRef fields(record + kEntryLength + name, extra);
  if (!readLarge(fields, {&entry.size, &compressed, &header}))
    return false;
  offset += length;
  if (entry.name.ends_with("/"))
    return true; // a folder
  if (flags & 1 || (method != 0 && method != 8)) {
    error = "entry '" + entry.name.str() +
            "' is encrypted or compressed in a "
            "way that PyTorch does not use";
    return false;
  }
  entry.isCompressed = method == 8;
  if (!entry.isCompressed && compressed != entry.size)
    return false;
  if (!locate(entry, header, compressed, error))
    return false;
  entries.push_back(entry);
  return true;
}

bool Archive::readDirectory(std::string &error) {
  ArrayRef<char> bytes = file.bytes;
  error = "is not a whole zip file";
  if (bytes.size() < kEndLength)
    return false;
  // A comment may follow the record of the end.
  uint64_t first =
      bytes.size() - std::min<uint64_t>(bytes.size(), kEndLength + 0xffff);
  uint64_t place = bytes.size() - kEndLength;
  while (get32(bytes.data() + place) != kEndMark)
    if (place-- == first)
      return false;
  const char *record = bytes.data() + place;
  uint64_t count = get16(record + 10), size = get32(record + 12),
           start = get32(record + 16);
  bool isLarge =
      count == UINT16_MAX || size == UINT32_MAX || start == UINT32_MAX;
  if (isLarge && place >= kLocatorLength &&
      get32(record - kLocatorLength) == kLocatorMark) {
    uint64_t at = get64(record - kLocatorLength + 8);
    if (!fits(bytes, at, kLargeEndLength) ||
        get32(bytes.data() + at) != kLargeEndMark)
      return false;
    count = get64(bytes.data() + at + 32);
    size = get64(bytes.data() + at + 40);
    start = get64(bytes.data() + at + 48);
  }
  if (!fits(bytes, start, size) || count > kMaxEntries)
    return false;
  uint64_t offset = start;
  for (uint64_t i = 0; i < count; ++i)
    if (!readEntry(offset, start + size, error))
      return false;
  return true;
}

/// All entries lie in one folder, whose name says nothing.
bool Archive::dropFolder(std::string &error) {
  error = "has no entries";
  if (entries.empty())
    return false;
  StringRef folder = entries.front().name.split('/').first;
  for (auto [i, entry] : llvm::enumerate(entries)) {
    auto [own, rest] = entry.name.split('/');
    llvm::SmallVector<StringRef> parts;
    rest.split(parts, '/');
    error = "entry '" + entry.name.str() + "' has a name that it must not have";
    if (own.empty() || own != folder || rest.empty() || rest.contains('\\') ||
        rest.contains('\0') || llvm::is_contained(parts, "..") ||
        llvm::is_contained(parts, ""))
      return false;
    error = "entry '" + entry.name.str() + "' is there twice";
    entry.name = rest;
    if (!positions.try_emplace(rest, i).second)
      return false;
  }
  return true;
}

std::optional<Archive> Archive::open(const MappedFile &file,
                                     std::string &error) {
  Archive archive;
  archive.file = file;
  if (!archive.readDirectory(error) || !archive.dropFolder(error))
    return std::nullopt;
  return archive;
}

const Archive::Entry *Archive::find(StringRef name) const {
  auto found = positions.find(name);
  return found == positions.end() ? nullptr : &entries[found->second];
}

// --- Contents ----------------------------------------------------------------

static bool hasChecksum(ArrayRef<char> bytes, uint32_t checksum) {
  auto *data = reinterpret_cast<const Bytef *>(bytes.data());
  return crc32_z(0, data, bytes.size()) == checksum;
}

std::optional<ArrayRef<char>> Archive::getStored(const Entry &entry,
                                                 std::string &error) const {
  if (entry.isCompressed)
    error = "entry '" + entry.name.str() + "' is compressed";
  else if (!entry.isChecked && !hasChecksum(entry.stored, entry.checksum))
    error = "entry '" + entry.name.str() + "' does not have its checksum";
  else {
    entry.isChecked = true;
    return entry.stored;
  }
  return std::nullopt;
}

/// Exactly as many bytes as `text` has room for.
static bool inflateTo(ArrayRef<char> bytes, std::string &text) {
  z_stream stream = {};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
    return false;
  stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(bytes.data()));
  stream.avail_in = uInt(bytes.size());
  stream.next_out = reinterpret_cast<Bytef *>(text.data());
  stream.avail_out = uInt(text.size());
  int result = inflate(&stream, Z_FINISH);
  bool isWhole =
      result == Z_STREAM_END && stream.avail_out == 0 && stream.avail_in == 0;
  inflateEnd(&stream);
  return isWhole;
}

std::optional<std::string> Archive::read(const Entry &entry,
                                         std::string &error) const {
  uint64_t limit =
      std::max<uint64_t>(kSmallText, entry.stored.size() * kMaxRatio);
  if (entry.size > std::min(kMaxText, limit)) {
    error = "entry '" + entry.name.str() + "' is too large";
    return std::nullopt;
  }
  std::string text(entry.size, '\0');
  if (!entry.isCompressed)
    text.assign(entry.stored.data(), entry.stored.size());
  else if (!inflateTo(entry.stored, text)) {
    error = "entry '" + entry.name.str() + "' cannot be decompressed";
    return std::nullopt;
  }
  if (hasChecksum(ArrayRef<char>(text.data(), text.size()), entry.checksum))
    return text;
  error = "entry '" + entry.name.str() + "' does not have its checksum";
  return std::nullopt;
}

} // namespace tcc
