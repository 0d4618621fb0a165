//===- ImageLinker.h - Objects to one image ---------------------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_CPU_OBJECT_IMAGELINKER_H
#define TCC_COMPILER_CODEGEN_CPU_OBJECT_IMAGELINKER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace tcc::cpu {

/// The code of one variant: a shared object that imports nothing.
struct Image {
  std::vector<char> bytes;
  /// Address of each kernel in the image, in the order asked for.
  std::vector<uint64_t> offsets;
};

/// Links objects and the library into an image and finds `kernels` in it. An
/// undefined symbol is an error. The bytes depend on the objects alone.
/// One call at a time: the linker keeps global state.
llvm::Expected<Image> linkImage(llvm::ArrayRef<llvm::StringRef> objects,
                                llvm::ArrayRef<std::string> kernels);

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_OBJECT_IMAGELINKER_H
