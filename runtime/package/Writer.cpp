#include "runtime/package/Writer.h"

#include "runtime/base/OutputFile.h"
#include "runtime/package/Digest.h"

#include <algorithm>
#include <cstring>

using namespace tcc;
using namespace tcc::runtime;

/// Linux keeps what one call wrote in pages as large as the call, and maps all
/// of a large page where a part of it is read. So a tensor of which few bytes
/// are read is written in small pieces, any other at once.
static constexpr uint64_t kSparsePiece = 1 << 16;

uint32_t PackageWriter::addSection(format::SectionKind kind,
                                   std::span<const std::byte> bytes) {
  sections.push_back({kind, bytes.size(), digestOf(bytes), {{0, bytes}}});
  return sections.size() - 1;
}

uint32_t PackageWriter::addWeights(std::span<const WeightData> tensors) {
  Section section{format::SectionKind::Weights, 0, {}, {}};
  DigestStream digests;
  for (const WeightData &tensor : tensors) {
    uint64_t size = tensor.bytes.size();
    uint64_t step = tensor.isSparse ? kSparsePiece : size;
    for (uint64_t at = 0; at < size; at += step)
      section.pieces.push_back(
          {tensor.offset + at,
           tensor.bytes.subspan(at, std::min(step, size - at))});
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

Status PackageWriter::write(const std::string &path) const {
  format::FileHeader header = {};
  std::vector<format::SectionEntry> table = layOut(header.fileSize);
  auto tableBytes = std::as_bytes(std::span(table));
  std::memcpy(header.magic, format::kMagic, sizeof(header.magic));
  header.majorVersion = format::kMajorVersion;
  header.minorVersion = format::kMinorVersion;
  header.sectionCount = table.size();
  header.tableDigest = digestOf(tableBytes);

  Result<OutputFile> file = OutputFile::create(path);
  if (!file.ok())
    return file.takeStatus();
  file->write(std::as_bytes(std::span(&header, 1)));
  file->write(tableBytes);
  for (size_t i = 0; i < sections.size(); ++i)
    for (const Piece &piece : sections[i].pieces) {
      file->padTo(table[i].offset + piece.offset);
      file->write(piece.bytes);
    }
  file->padTo(header.fileSize);
  return file->commit();
}
