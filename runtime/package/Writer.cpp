#include "runtime/package/Writer.h"

#include "runtime/package/Digest.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace tcc;
using namespace tcc::runtime;

static Status ioError(std::string_view action, const std::string &path) {
  return makeError(Code::Io, "cannot ", action, " '", path,
                   "': ", std::strerror(errno));
}

uint32_t PackageWriter::addSection(format::SectionKind kind,
                                   std::span<const std::byte> bytes) {
  sections.push_back({kind, bytes.size(), digestOf(bytes), {{0, bytes}}});
  return sections.size() - 1;
}

uint32_t PackageWriter::addWeights(std::span<const WeightData> tensors) {
  Section section{format::SectionKind::Weights, 0, {}, {}};
  DigestStream digests;
  for (const WeightData &tensor : tensors) {
    section.pieces.push_back({tensor.offset, tensor.bytes});
    section.size = tensor.offset + tensor.bytes.size();
    digests.update(std::as_bytes(std::span(tensor.digest.bytes)));
  }
  section.digest = digests.finish();
  sections.push_back(std::move(section));
  return sections.size() - 1;
}

static uint64_t alignToPage(uint64_t offset) {
  return (offset + format::kPageSize - 1) / format::kPageSize *
         format::kPageSize;
}

std::vector<format::SectionEntry>
PackageWriter::layOut(uint64_t &fileSize) const {
  fileSize = sizeof(format::FileHeader) +
             sections.size() * sizeof(format::SectionEntry);
  std::vector<format::SectionEntry> table;
  for (const Section &section : sections) {
    uint64_t offset = alignToPage(fileSize);
    table.push_back({section.kind, 0, offset, section.size, section.digest});
    fileSize = offset + section.size;
  }
  return table;
}

/// pwrite until all is written; gaps between pieces stay zero.
static bool writeAt(int file, uint64_t offset,
                    std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t written = pwrite(file, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return false;
    bytes = bytes.subspan(written);
    offset += written;
  }
  return true;
}

Status PackageWriter::writeFile(int file, const std::string &path) const {
  format::FileHeader header = {};
  std::vector<format::SectionEntry> table = layOut(header.fileSize);
  auto tableBytes = std::as_bytes(std::span(table));
  std::memcpy(header.magic, format::kMagic, sizeof(header.magic));
  header.majorVersion = format::kMajorVersion;
  header.minorVersion = format::kMinorVersion;
  header.sectionCount = table.size();
  header.tableDigest = digestOf(tableBytes);
  bool written = ftruncate(file, header.fileSize) == 0 &&
                 writeAt(file, 0, std::as_bytes(std::span(&header, 1))) &&
                 writeAt(file, sizeof(header), tableBytes);
  for (size_t i = 0; written && i < sections.size(); ++i)
    for (const Piece &piece : sections[i].pieces)
      written =
          written && writeAt(file, table[i].offset + piece.offset, piece.bytes);
  if (!written || fsync(file) != 0)
    return ioError("write", path);
  return Status();
}

Status PackageWriter::write(const std::string &path) const {
  std::string temporary = concat(path, ".tmp", getpid());
  int file =
      open(temporary.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);
  if (file < 0)
    return ioError("create", path);
  Status status = writeFile(file, path);
  if (close(file) != 0 && status.ok())
    status = ioError("write", path);
  if (status.ok() && std::rename(temporary.c_str(), path.c_str()) != 0)
    status = ioError("rename to", path);
  if (!status.ok())
    unlink(temporary.c_str());
  return status;
}
