#include "compiler/codegen/cache/KernelKey.h"

#include "compiler/codegen/region/RegionFrame.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <link.h>

using namespace mlir;

namespace tcc::codegen {
namespace {

/// A file that code of this process was loaded from.
struct LoadedFile {
  std::string path;
  bool hasCompiler = false; ///< this function is in it
};

} // namespace

static int addFile(dl_phdr_info *object, size_t /*bytes*/, void *files) {
  LoadedFile file{*object->dlpi_name ? object->dlpi_name : "/proc/self/exe"};
  auto here = reinterpret_cast<uintptr_t>(&addFile);
  for (const auto &segment : ArrayRef(object->dlpi_phdr, object->dlpi_phnum)) {
    uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    file.hasCompiler |= segment.p_type == PT_LOAD && begin <= here &&
                        here < begin + segment.p_memsz;
  }
  static_cast<std::vector<LoadedFile> *>(files)->push_back(file);
  return 0;
}

/// The bytes of the file that the compiler is in, sizes and times of its
/// libraries' files.
static std::string makeCompilerIdentity() {
  std::vector<LoadedFile> files;
  dl_iterate_phdr(addFile, &files);
  llvm::BLAKE3 hash;
  for (const LoadedFile &file : files) {
    if (file.hasCompiler) {
      if (auto bytes = llvm::MemoryBuffer::getFile(file.path))
        hash.update((*bytes)->getBuffer());
      continue;
    }
    llvm::sys::fs::file_status status;
    if (llvm::sys::fs::status(file.path, status))
      continue; // the kernel's own, which has no file
    auto time = status.getLastModificationTime().time_since_epoch().count();
    hash.update((llvm::sys::path::filename(file.path) + " " +
                 Twine(status.getSize()) + " " + Twine(time) + "\n")
                    .str());
  }
  return llvm::toHex(hash.final());
}

std::string makeKey(exec::KernelOp kernel, StringRef settings) {
  static const std::string compiler = makeCompilerIdentity();
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << compiler << '\n' << settings << '\n';
  for (graph::SymbolAttr symbol : getSizeSymbols(kernel.getComputation()))
    stream << symbol << '\n';
  kernel.getComputation()->print(stream, OpPrintingFlags().useLocalScope());
  return llvm::toHex(llvm::BLAKE3::hash(llvm::arrayRefFromStringRef(text)),
                     /*LowerCase=*/true);
}

} // namespace tcc::codegen
