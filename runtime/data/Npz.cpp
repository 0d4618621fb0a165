#include "runtime/data/Npz.h"

#include "runtime/data/Npy.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::runtime;

using Member = NpzFile::Member;

template <typename... Parts>
static Status refuse(const std::string &path, const Parts &...parts) {
  return makeError(Code::BadData, "'", path, "': ", parts...);
}

static Result<std::vector<Member>> readMembers(std::span<const std::byte> file,
                                               const std::string &path) {
  constexpr std::string_view kEnding = ".npy";
  auto directory = ZipDirectory::read(file);
  if (!directory.ok())
    return refuse(path, directory.takeStatus().message());
  std::vector<Member> members;
  for (const ZipEntry &entry : directory->entries()) {
    std::string_view name = entry.name;
    if (name.ends_with(kEnding))
      name.remove_suffix(kEnding.size());
    members.push_back({std::string(name), entry});
  }
  return members;
}

Result<NpzFile> NpzFile::open(const std::string &path) {
  Result<MappedFile> file = MappedFile::open(path);
  if (!file.ok())
    return file.takeStatus();
  auto members = readMembers(file->bytes(), path);
  if (!members.ok())
    return members.takeStatus();
  return NpzFile(std::move(*file), std::move(*members), path);
}

const Member *NpzFile::find(std::string_view name) const {
  auto found = std::ranges::find(directory, name, &Member::name);
  return found == directory.end() ? nullptr : &*found;
}

Result<Tensor> NpzFile::read(const Member &member) const {
  constexpr uint64_t kMostOfDeflate = 1100; ///< times that a text shrinks
  const ZipEntry &entry = member.entry;
  std::string name = concat(path, ":", member.name);
  if (!entry.isCompressed) {
    Status status = checkStored(entry);
    return status.ok() ? parseNpy(entry.stored, name)
                       : refuse(path, status.message());
  }
  if (entry.size / kMostOfDeflate > entry.stored.size())
    return refuse(path, "array '", member.name, "' does not decompress");
  auto memory = Memory::allocate(entry.size, systemAllocator(), member.name);
  if (!memory.ok())
    return memory.takeStatus();
  if (Status status = extract(entry, memory->span()); !status.ok())
    return refuse(path, status.message());
  return parseNpy(memory->span(), name);
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
