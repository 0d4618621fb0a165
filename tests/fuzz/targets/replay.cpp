//===- replay.cpp - Runs a target on files, without libFuzzer -------------===//

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

extern "C" int LLVMFuzzerInitialize(int *argc, char ***argv);
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int count = 0;

static void runFile(const std::string &path) {
  auto file = llvm::MemoryBuffer::getFile(path);
  if (!file) {
    llvm::errs() << "import-fuzz: " << path << " cannot be read\n";
    std::exit(1);
  }
  llvm::errs() << path << '\n'; // the last one is that which ended it
  llvm::StringRef bytes = (*file)->getBuffer();
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t *>(bytes.data()),
                         bytes.size());
  ++count;
}

int main(int argc, char **argv) {
  LLVMFuzzerInitialize(&argc, &argv);
  for (int i = 1; i < argc; ++i) {
    std::string path = argv[i];
    if (path.starts_with("--"))
      continue;
    if (!llvm::sys::fs::is_directory(path)) {
      runFile(path);
      continue;
    }
    std::error_code code;
    for (llvm::sys::fs::directory_iterator file(path, code), end;
         file != end && !code; file.increment(code))
      runFile(file->path());
  }
  llvm::outs() << count << " passed, 0 failed\n";
  return count == 0;
}
