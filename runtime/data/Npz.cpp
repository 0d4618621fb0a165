#include "runtime/data/Npz.h"

#include "runtime/data/Npy.h"

#include <algorithm>
#include <cstring>
#include <zlib.h>

using namespace tcc;
using namespace tcc::runtime;

// Signatures and sizes of the zip format (APPNOTE.TXT 4.3).
static constexpr uint32_t kEndSignature = 0x06054b50;
static constexpr uint32_t kDirectorySignature = 0x02014b50;
static constexpr uint32_t kLocalSignature = 0x04034b50;
static constexpr size_t kEndBytes = 22, kEntryBytes = 46, kLocalBytes = 30;
static constexpr size_t kMaxComment = 0xffff;

namespace {

template <typename T> T load(std::span<const std::byte> bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

using Member = NpzFile::Member;

template <typename... Parts>
Status refuse(const std::string &path, const Parts &...parts) {
  return makeError(Code::BadData, "'", path, "': ", parts...);
}

/// The position of the end record: the last one in the file.
Result<size_t> findEnd(std::span<const std::byte> file,
                       const std::string &path) {
  for (size_t back = kEndBytes;
       back <= file.size() && back <= kEndBytes + kMaxComment; ++back)
    if (load<uint32_t>(file, file.size() - back) == kEndSignature)
      return file.size() - back;
  return refuse(path, "not a zip archive");
}

Result<std::vector<Member>> readDirectory(std::span<const std::byte> file,
                                          const std::string &path) {
  Result<size_t> end = findEnd(file, path);
  if (!end.ok())
    return end.takeStatus();
  uint16_t count = load<uint16_t>(file, *end + 10);
  uint64_t at = load<uint32_t>(file, *end + 16);
  std::vector<Member> members;
  for (uint16_t i = 0; i < count; ++i) {
    if (at + kEntryBytes > file.size() ||
        load<uint32_t>(file, at) != kDirectorySignature)
      return refuse(path, "the directory of the archive is malformed");
    uint16_t nameBytes = load<uint16_t>(file, at + 28);
    if (at + kEntryBytes + nameBytes > file.size())
      return refuse(path, "the directory of the archive is malformed");
    std::string name(
        reinterpret_cast<const char *>(file.data() + at + kEntryBytes),
        nameBytes);
    if (name.ends_with(".npy"))
      name.resize(name.size() - 4);
    members.push_back(
        {std::move(name), load<uint16_t>(file, at + 10),
         load<uint32_t>(file, at + 16), load<uint32_t>(file, at + 20),
         load<uint32_t>(file, at + 24), load<uint32_t>(file, at + 42)});
    at += kEntryBytes + nameBytes + load<uint16_t>(file, at + 30) +
          load<uint16_t>(file, at + 32);
  }
  return members;
}

bool inflateInto(std::span<const std::byte> packed,
                 std::span<std::byte> bytes) {
  constexpr int kRawDeflate = -MAX_WBITS;
  z_stream stream = {};
  if (inflateInit2(&stream, kRawDeflate) != Z_OK)
    return false;
  stream.next_in =
      reinterpret_cast<Bytef *>(const_cast<std::byte *>(packed.data()));
  stream.avail_in = packed.size();
  stream.next_out = reinterpret_cast<Bytef *>(bytes.data());
  stream.avail_out = bytes.size();
  int result = inflate(&stream, Z_FINISH);
  bool complete = result == Z_STREAM_END && stream.avail_out == 0;
  inflateEnd(&stream);
  return complete;
}

/// Reads an array whose bytes are those that the archive was made of.
Result<Tensor> parseMember(std::span<const std::byte> bytes,
                           const Member &member, const std::string &path) {
  if (crc32_z(0, reinterpret_cast<const Bytef *>(bytes.data()), bytes.size()) !=
      member.crc)
    return refuse(path, "array '", member.name, "' has another checksum");
  return parseNpy(bytes, concat(path, ":", member.name));
}

Result<Tensor> readMember(std::span<const std::byte> file, const Member &member,
                          const std::string &path) {
  uint64_t at = member.localOffset;
  if (at + kLocalBytes > file.size() ||
      load<uint32_t>(file, at) != kLocalSignature)
    return refuse(path, "array '", member.name, "' is malformed");
  at += kLocalBytes + load<uint16_t>(file, at + 26) +
        load<uint16_t>(file, at + 28);
  if (at > file.size() || member.packedBytes > file.size() - at)
    return refuse(path, "array '", member.name, "' ends after the file");
  std::span<const std::byte> packed = file.subspan(at, member.packedBytes);
  if (member.method == 0)
    return parseMember(packed, member, path);
  if (member.method != 8)
    return refuse(path, "array '", member.name, "' has compression method ",
                  member.method, ", expected stored or deflated");
  auto memory = Memory::allocate(member.bytes, systemAllocator(), member.name);
  if (!memory.ok())
    return memory.takeStatus();
  if (!inflateInto(packed, memory->span()))
    return refuse(path, "array '", member.name, "' does not decompress");
  return parseMember(memory->span(), member, path);
}

} // namespace

Result<NpzFile> NpzFile::open(const std::string &path) {
  Result<MappedFile> file = MappedFile::open(path);
  if (!file.ok())
    return file.takeStatus();
  auto members = readDirectory(file->bytes(), path);
  if (!members.ok())
    return members.takeStatus();
  return NpzFile(std::move(*file), std::move(*members), path);
}

const Member *NpzFile::find(std::string_view name) const {
  auto found = std::ranges::find(directory, name, &Member::name);
  return found == directory.end() ? nullptr : &*found;
}

Result<Tensor> NpzFile::read(const Member &member) const {
  return readMember(file.bytes(), member, path);
}

Result<Tensor> runtime::readNpz(const std::string &path,
                                std::string_view name) {
  Result<NpzFile> file = NpzFile::open(path);
  if (!file.ok())
    return file.takeStatus();
  if (file->members().size() == 1)
    return file->read(file->members().front());
  if (const Member *member = file->find(name))
    return file->read(*member);
  return makeError(Code::Usage, "'", path, "' has no array '", name, "'");
}
