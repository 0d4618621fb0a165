#include "compiler/codegen/cpu/object/ImageLinker.h"
#include "compiler/codegen/cpu/object/Library.h"

#include "lld/Common/Driver.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <sys/mman.h>
#include <unistd.h>

LLD_HAS_DRIVER(elf)

using namespace tcc::cpu;

namespace {

/// A file in memory, which the linker opens by path.
class MemoryFile {
public:
  static llvm::Expected<MemoryFile> create(llvm::StringRef bytes) {
    int descriptor = memfd_create("object", MFD_CLOEXEC);
    if (descriptor < 0)
      return llvm::errorCodeToError(llvm::errnoAsErrorCode());
    MemoryFile file(descriptor);
    llvm::raw_fd_ostream stream(descriptor, /*shouldClose=*/false);
    stream << bytes;
    stream.flush();
    if (stream.has_error()) {
      std::error_code error = stream.error();
      stream.clear_error();
      return llvm::errorCodeToError(error);
    }
    return file;
  }

  MemoryFile(MemoryFile &&other) : descriptor(other.descriptor) {
    other.descriptor = -1;
  }
  ~MemoryFile() {
    if (descriptor >= 0)
      close(descriptor);
  }

  std::string path() const {
    return "/proc/self/fd/" + std::to_string(descriptor);
  }

private:
  explicit MemoryFile(int descriptor) : descriptor(descriptor) {}

  int descriptor;
};

} // namespace

/// Only kernels are visible, so that all else binds inside the image.
static std::string makeVersionScript(llvm::ArrayRef<std::string> kernels) {
  std::string script = "{ global: ";
  for (const std::string &kernel : kernels)
    script += kernel + "; ";
  return script + "local: *; };";
}

static llvm::Error runLinker(llvm::ArrayRef<MemoryFile> inputs,
                             const MemoryFile &versionScript,
                             const std::string &output) {
  std::vector<std::string> arguments = {"ld.lld",
                                        "-shared",
                                        "--threads=1",
                                        "--no-undefined",
                                        "--gc-sections",
                                        "--build-id=none",
                                        "-Bsymbolic",
                                        "--hash-style=gnu",
                                        "-znoexecstack",
                                        "-znorelro",
                                        "-zseparate-loadable-segments",
                                        "--version-script=" +
                                            versionScript.path(),
                                        "-o",
                                        output};
  for (const MemoryFile &input : inputs)
    arguments.push_back(input.path());
  std::vector<const char *> pointers;
  for (const std::string &argument : arguments)
    pointers.push_back(argument.c_str());
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  lld::Result result =
      lld::lldMain(pointers, stream, stream, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode == 0)
    return llvm::Error::success();
  return llvm::createStringError("linking kernels failed: " + messages);
}

static llvm::Expected<std::vector<uint64_t>>
findKernels(llvm::MemoryBufferRef image, llvm::ArrayRef<std::string> kernels) {
  auto object = llvm::object::ELF64LEObjectFile::create(image);
  if (!object)
    return object.takeError();
  llvm::StringMap<uint64_t> addresses;
  for (const llvm::object::ELFSymbolRef symbol :
       object->getDynamicSymbolIterators()) {
    auto name = symbol.getName();
    auto address = symbol.getAddress();
    if (!name)
      return name.takeError();
    if (!address)
      return address.takeError();
    addresses[*name] = *address;
  }
  std::vector<uint64_t> offsets;
  for (const std::string &kernel : kernels) {
    auto found = addresses.find(kernel);
    if (found == addresses.end())
      return llvm::createStringError("kernel " + kernel +
                                     " is missing in the image");
    offsets.push_back(found->second);
  }
  return offsets;
}

llvm::Expected<Image>
tcc::cpu::linkImage(llvm::ArrayRef<llvm::StringRef> objects,
                    llvm::ArrayRef<std::string> kernels) {
  std::vector<MemoryFile> inputs;
  std::vector<llvm::StringRef> contents(objects.begin(), objects.end());
  contents.push_back(getLibraryObject());
  for (llvm::StringRef bytes : contents) {
    auto file = MemoryFile::create(bytes);
    if (!file)
      return file.takeError();
    inputs.push_back(std::move(*file));
  }
  auto script = MemoryFile::create(makeVersionScript(kernels));
  if (!script)
    return script.takeError();

  llvm::SmallString<128> output;
  if (std::error_code error =
          llvm::sys::fs::createTemporaryFile("tcc-image", "so", output))
    return llvm::errorCodeToError(error);
  llvm::FileRemover remover(output);
  if (llvm::Error error = runLinker(inputs, *script, std::string(output)))
    return error;
  auto linked = llvm::MemoryBuffer::getFile(output);
  if (!linked)
    return llvm::errorCodeToError(linked.getError());
  auto offsets = findKernels(**linked, kernels);
  if (!offsets)
    return offsets.takeError();
  llvm::StringRef bytes = (*linked)->getBuffer();
  return Image{{bytes.begin(), bytes.end()}, std::move(*offsets)};
}
