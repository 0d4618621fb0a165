//===- LibraryTables.h - Descriptions for libraries -------------*- C++ -*-===//
#ifndef TCC_COMPILER_PACKAGE_LIBRARYTABLES_H
#define TCC_COMPILER_PACKAGE_LIBRARYTABLES_H

#include "dialects/exec/ExecDialect.h"
#include "runtime/package/Program_generated.h"

namespace tcc::package {

/// The table of `work`; none if that is null.
flatbuffers::Offset<format::LibraryWork>
buildLibraryWork(flatbuffers::FlatBufferBuilder &fbb,
                 exec::LibraryWorkAttr work);

} // namespace tcc::package

#endif // TCC_COMPILER_PACKAGE_LIBRARYTABLES_H
