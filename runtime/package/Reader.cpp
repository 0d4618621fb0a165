#include "runtime/package/Reader.h"

#include "runtime/package/Digest.h"
#include "runtime/package/Verify.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace tcc;
using namespace tcc::runtime;

/// More than any compiler writes: one program, a few variants, a few texts.
static constexpr uint32_t kMaxSections = 4096;

Package::~Package() {
  if (mapping)
    munmap(mapping, weightsSection->size);
  if (file >= 0)
    close(file);
}

Result<std::shared_ptr<const Package>>
Package::open(const std::string &path, const PackageOptions &options) {
  std::shared_ptr<Package> package(new Package);
  if (Status status = package->openFile(path); !status.ok())
    return status;
  if (Status status = package->readHeader(); !status.ok())
    return status;
  if (Status status = package->readTable(); !status.ok())
    return status;
  if (Status status = package->readProgram(); !status.ok())
    return status;
  if (Status status = package->mapWeights(); !status.ok())
    return status;
  if (options.verifyWeights)
    if (Status status = package->verifyWeights(); !status.ok())
      return status;
  return std::shared_ptr<const Package>(std::move(package));
}

Status Package::malformed(const std::string &what) const {
  return makeError(Code::BadData, "package '", name, "': ", what);
}

Status Package::openFile(const std::string &path) {
  name = path;
  file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info;
  if (file < 0 || fstat(file, &info) != 0)
    return makeError(Code::Io, "cannot open '", path,
                     "': ", std::strerror(errno));
  if (!S_ISREG(info.st_mode))
    return makeError(Code::Io, "'", path, "' is not a file");
  size = info.st_size;
  return Status();
}

Status Package::readAt(uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    ssize_t got = pread(file, bytes.data(), bytes.size(), offset);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return makeError(Code::Io, "cannot read '", name,
                       "': ", std::strerror(errno));
    if (got == 0)
      return malformed("the file became shorter while it was read");
    bytes = bytes.subspan(got);
    offset += got;
  }
  return Status();
}

Status Package::readHeader() {
  if (size < sizeof(fileHeader))
    return malformed(concat("not a tcc package: ", size, " bytes"));
  auto bytes = std::as_writable_bytes(std::span(&fileHeader, 1));
  if (Status status = readAt(0, bytes); !status.ok())
    return status;
  if (std::memcmp(fileHeader.magic, format::kMagic, sizeof(format::kMagic)))
    return malformed("not a tcc package: wrong magic bytes");
  if (fileHeader.majorVersion != format::kMajorVersion)
    return malformed(concat("format version ", fileHeader.majorVersion, ".",
                            fileHeader.minorVersion,
                            " is not readable by this runtime, which reads ",
                            format::kMajorVersion, ".x"));
  if (fileHeader.fileSize != size)
    return malformed(concat("the file has ", size, " bytes, its header says ",
                            fileHeader.fileSize));
  return Status();
}

Status Package::checkSection(size_t index, uint64_t fileSize) const {
  const format::SectionEntry &entry = table[index];
  if (entry.offset % format::kPageSize)
    return malformed(concat("section ", index, " is not page-aligned"));
  if (entry.offset > fileSize || entry.size > fileSize - entry.offset)
    return malformed(concat("section ", index, " ends after the file"));
  return Status();
}

Status Package::readTable() {
  uint32_t count = fileHeader.sectionCount;
  if (count > kMaxSections ||
      count * sizeof(format::SectionEntry) > size - sizeof(fileHeader))
    return malformed(concat("the section table of ", count,
                            " entries does not fit the file"));
  table.resize(count);
  auto bytes = std::as_writable_bytes(std::span(table));
  if (Status status = readAt(sizeof(fileHeader), bytes); !status.ok())
    return status;
  if (digestOf(bytes) != fileHeader.tableDigest)
    return malformed("the section table does not match its digest");
  for (size_t i = 0; i < count; ++i)
    if (Status status = checkSection(i, size); !status.ok())
      return status;
  return Status();
}

Result<Memory> Package::readSection(size_t index) const {
  const format::SectionEntry &entry = table[index];
  Result<Memory> bytes = Memory::allocate(entry.size, systemAllocator(), name);
  if (!bytes.ok())
    return bytes;
  if (Status status = readAt(entry.offset, bytes->span()); !status.ok())
    return status;
  if (digestOf(bytes->span()) != entry.digest)
    return malformed(concat("section ", index, " does not match its digest"));
  return bytes;
}

Status Package::readProgram() {
  size_t index = table.size();
  for (size_t i = 0; i < table.size(); ++i) {
    if (table[i].kind == format::SectionKind::Weights) {
      if (weightsSection)
        return malformed("two weights sections");
      weightsSection = &table[i];
    }
    if (table[i].kind != format::SectionKind::Program)
      continue;
    if (index != table.size())
      return malformed("two program sections");
    index = i;
  }
  if (index == table.size())
    return malformed("no program section");
  Result<Memory> bytes = readSection(index);
  if (!bytes.ok())
    return bytes.takeStatus();
  programBytes = std::move(*bytes);
  ProgramLimits limits;
  limits.sections = table;
  if (weightsSection)
    limits.weightBytes = weightsSection->size;
  if (Status status = verifyProgram(programBytes.span(), limits); !status.ok())
    return malformed(std::string(status.message()));
  return Status();
}

Status Package::mapWeights() {
  if (!weightsSection || weightsSection->size == 0)
    return Status();
  void *address = mmap(nullptr, weightsSection->size, PROT_READ, MAP_PRIVATE,
                       file, weightsSection->offset);
  if (address == MAP_FAILED)
    return makeError(Code::OutOfMemory, "cannot map ", weightsSection->size,
                     " bytes of '", name, "': ", std::strerror(errno));
  mapping = static_cast<std::byte *>(address);
  const auto *weights = program().weights();
  for (size_t i = 0; weights && i < weights->size(); ++i)
    if (weights->Get(i)->sparse() && hasWeight(*weights->Get(i)))
      adviseSparse(*weights->Get(i));
  return Status();
}

/// Pages of a tensor of which few are needed are not read ahead. Where the
/// system refuses, they cost time and no more.
void Package::adviseSparse(const format::ConstTensor &tensor) const {
  uint64_t begin = (tensor.offset() + format::kPageSize - 1) /
                   format::kPageSize * format::kPageSize;
  uint64_t end = (tensor.offset() + tensor.bytes()) / format::kPageSize *
                 format::kPageSize;
  if (begin >= end)
    return;
  (void)madvise(mapping + begin, end - begin, MADV_RANDOM);
}

std::span<const std::byte>
Package::weight(const format::ConstTensor &tensor) const {
  return {mapping + tensor.offset(), tensor.bytes()};
}

void Package::releaseWeights() const {
  if (mapping)
    (void)madvise(mapping, weightsSection->size, MADV_DONTNEED);
}

/// Through pread: a page of the mapping that is read now stays as it is, so
/// that an error of the disk is a status here and not a signal later.
Status Package::verifyWeights() const {
  if (!weightsSection || !program().weights())
    return Status();
  constexpr size_t kPiece = 1 << 20;
  Result<Memory> piece = Memory::allocate(kPiece, systemAllocator(), name);
  if (!piece.ok())
    return piece.takeStatus();
  DigestStream all;
  for (const format::ConstTensor *tensor : *program().weights()) {
    if (!hasWeight(*tensor))
      continue;
    DigestStream digest;
    for (uint64_t at = 0; at < tensor->bytes(); at += kPiece) {
      auto bytes =
          piece->span().first(std::min<uint64_t>(kPiece, tensor->bytes() - at));
      uint64_t offset = weightsSection->offset + tensor->offset() + at;
      if (Status status = readAt(offset, bytes); !status.ok())
        return status;
      digest.update(bytes);
    }
    format::Digest found = digest.finish();
    if (std::memcmp(found.bytes, tensor->digest()->data(), sizeof(found)))
      return malformed(concat("weight '", tensor->name()->string_view(),
                              "' does not match its digest"));
    all.update(std::as_bytes(std::span(found.bytes)));
  }
  if (all.finish() != weightsSection->digest)
    return malformed("the weights section does not match its digest");
  return Status();
}

const char *runtime::findMetadata(const format::Program &program,
                                  std::string_view key) {
  if (!program.metadata())
    return nullptr;
  for (const format::Metadata *entry : *program.metadata())
    if (entry->key()->string_view() == key)
      return entry->value() ? entry->value()->c_str() : "";
  return nullptr;
}
