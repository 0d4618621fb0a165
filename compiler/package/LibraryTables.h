//===- LibraryTables.h - Descriptions for libraries -------------*- C++ -*-===//
#ifndef TCC_COMPILER_PACKAGE_LIBRARYTABLES_H
#define TCC_COMPILER_PACKAGE_LIBRARYTABLES_H

#include "dialects/exec/ExecDialect.h"
#include "runtime/package/Program_generated.h"

namespace tcc::package {

/// The tables of a kernel's attributes; nothing for those that are null.
flatbuffers::Offset<format::Product>
buildProduct(flatbuffers::FlatBufferBuilder &fbb, exec::ProductAttr product);
flatbuffers::Offset<format::Convolution>
buildConvolution(flatbuffers::FlatBufferBuilder &fbb,
                 exec::ConvolutionAttr convolution);

} // namespace tcc::package

#endif // TCC_COMPILER_PACKAGE_LIBRARYTABLES_H
