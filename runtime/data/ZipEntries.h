//===- ZipEntries.h - What zip files have -----------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_ZIPENTRIES_H
#define TCC_RUNTIME_DATA_ZIPENTRIES_H

#include "runtime/package/ZipDirectory.h"

namespace tcc::runtime {

using ZipEntry = ZipDirectory::Entry;

/// Fails unless the entry is stored as it is, with its checksum.
Status checkStored(const ZipEntry &entry);

/// Writes the entry, which has the bytes of `to`, there. Code::BadData where it
/// does not decompress or has another checksum.
Status extract(const ZipEntry &entry, std::span<std::byte> to);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_ZIPENTRIES_H
