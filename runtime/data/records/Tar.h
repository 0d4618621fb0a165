//===- Tar.h - What is in a tar file ----------------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_RECORDS_TAR_H
#define TCC_RUNTIME_DATA_RECORDS_TAR_H

#include "runtime/data/SampleFile.h"

#include <functional>

namespace tcc::runtime {

struct TarMember {
  std::string name;
  uint64_t offset = 0; ///< of its bytes, which lie behind one another
  uint64_t size = 0;
};

/// Calls `visit` for each regular file of a tar file (POSIX.1-1988, with long
/// names and sizes as POSIX.1-2001 and GNU tar write them) until it fails; of
/// bytes only headers are read. Code::BadData where a header is damaged or says
/// what the file cannot have.
Status visitTar(const SampleFile &file,
                const std::function<Status(const TarMember &)> &visit);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_RECORDS_TAR_H
