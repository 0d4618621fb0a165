#include "tests/fuzz/targets/ZipFile.h"

#include <zlib.h>

namespace tcc {

namespace {

/// Little-endian numbers, one after the other.
struct Record {
  std::string bytes;

  Record &put(uint32_t value, unsigned count) {
    for (unsigned i = 0; i < count; ++i)
      bytes += char(value >> (8 * i));
    return *this;
  }
};

} // namespace

/// What the headers of an entry share: from the flags to the length of its
/// name, and that it has nothing more.
static void describe(Record &record, const std::string &name,
                     const std::string &data) {
  auto *begin = reinterpret_cast<const Bytef *>(data.data());
  record.put(0, 2).put(0, 2).put(0, 4); // flags, stored, time
  record.put(uint32_t(crc32_z(0, begin, data.size())), 4);
  record.put(uint32_t(data.size()), 4).put(uint32_t(data.size()), 4);
  record.put(uint32_t(name.size()), 2).put(0, 2);
}

MappedFile
makeZip(const std::vector<std::pair<std::string, std::string>> &entries) {
  Record file, directory;
  for (const auto &[own, data] : entries) {
    std::string name = "m/" + own;
    directory.put(0x02014b50, 4).put(20, 2).put(20, 2);
    describe(directory, name, data);
    directory.put(0, 2).put(0, 2).put(0, 2).put(0, 4);
    directory.put(uint32_t(file.bytes.size()), 4).bytes += name;
    file.put(0x04034b50, 4).put(20, 2);
    describe(file, name, data);
    file.bytes += name + data;
  }
  uint32_t start = uint32_t(file.bytes.size());
  file.bytes += directory.bytes;
  file.put(0x06054b50, 4).put(0, 4);
  file.put(uint32_t(entries.size()), 2).put(uint32_t(entries.size()), 2);
  file.put(uint32_t(directory.bytes.size()), 4).put(start, 4).put(0, 2);
  auto owner = std::make_shared<std::string>(std::move(file.bytes));
  return {owner, {owner->data(), owner->size()}};
}

} // namespace tcc
