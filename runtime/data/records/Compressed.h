//===- Compressed.h - Files that are compressed as a whole ------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_RECORDS_COMPRESSED_H
#define TCC_RUNTIME_DATA_RECORDS_COMPRESSED_H

#include "runtime/data/SampleFile.h"

namespace tcc::runtime {

/// Opens a file that samples are read from. One that ends in .zst or .zstd is
/// decompressed, once, to a file without a name in the folder of temporary
/// files, TMPDIR: samples are read in any order. Code::BadData where it is
/// damaged, or becomes more than 64 times as large and more than 1 GiB.
Result<std::shared_ptr<const SampleFile>>
openDecompressed(const std::string &path, const Files &files);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_RECORDS_COMPRESSED_H
