//===- Writer.h - Writes the package container ------------------*- C++ -*-===//
//
// The compiler's side of Format.h. Sections are numbered in the order of the
// add calls; Variant.image refers to these numbers.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_PACKAGE_WRITER_H
#define TCC_RUNTIME_PACKAGE_WRITER_H

#include "runtime/base/Status.h"
#include "runtime/package/Format.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace tcc::runtime {

/// One tensor of the weights section.
struct WeightData {
  uint64_t offset; ///< from the start of the section; ascending, 64-aligned
  std::span<const std::byte> bytes;
  format::Digest digest; ///< of `bytes`, as ConstTensor.digest says
  bool isSparse = false; ///< as ConstTensor.sparse
};

class PackageWriter {
public:
  /// Adds a section other than weights; `bytes` must live until `write`.
  uint32_t addSection(format::SectionKind kind,
                      std::span<const std::byte> bytes);
  /// Adds the weights section; the data must live until `write`.
  uint32_t addWeights(std::span<const WeightData> tensors);

  /// Writes the whole package, or nothing: see OutputFile.
  Status write(const std::string &path) const;

private:
  struct Piece {
    uint64_t offset; ///< in the section
    std::span<const std::byte> bytes;
  };
  struct Section {
    format::SectionKind kind;
    uint64_t size;
    format::Digest digest;
    std::vector<Piece> pieces;
  };

  std::vector<format::SectionEntry> layOut(uint64_t &fileSize) const;

  std::vector<Section> sections;
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_PACKAGE_WRITER_H
