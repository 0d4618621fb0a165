#include "compiler/codegen/cache/KernelKey.h"

#include "compiler/codegen/region/RegionFrame.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
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

/// A digest of the bytes of the file that the compiler is in, and of paths,
/// sizes and times of its libraries' files; empty if the former is not read.
static std::string makeCompilerIdentity() {
  std::vector<LoadedFile> files;
  dl_iterate_phdr(addFile, &files);
  llvm::BLAKE3 hash;
  for (const LoadedFile &file : files) {
    if (file.hasCompiler) {
      auto bytes = llvm::MemoryBuffer::getFile(file.path);
      if (!bytes)
        return "";
      hash.update((*bytes)->getBuffer());
      continue;
    }
    llvm::sys::fs::file_status status;
    if (llvm::sys::fs::status(file.path, status))
      continue; // the kernel's own, which has no file
    auto time = status.getLastModificationTime().time_since_epoch().count();
    hash.update(
        (file.path + " " + Twine(status.getSize()) + " " + Twine(time) + "\n")
            .str());
  }
  return llvm::toHex(hash.final());
}

static const std::string &getCompilerIdentity() {
  static const std::string identity = makeCompilerIdentity();
  return identity;
}

bool isCompilerKnown() { return !getCompilerIdentity().empty(); }

std::string makeKey(exec::KernelOp kernel, StringRef settings) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << getCompilerIdentity() << '\n' << settings << '\n';
  for (graph::SymbolAttr symbol : getSizeSymbols(kernel.getComputation()))
    stream << symbol << '\n';
  kernel.getComputation()->print(stream, OpPrintingFlags().useLocalScope());
  return llvm::toHex(llvm::BLAKE3::hash(llvm::arrayRefFromStringRef(text)),
                     /*LowerCase=*/true);
}

} // namespace tcc::codegen
