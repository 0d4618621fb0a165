#include "compiler/codegen/cuda/nvvm/Assembler.h"
#include "compiler/codegen/cuda/nvvm/Toolkit.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
#include <dlfcn.h>

using namespace tcc::cuda;

/// The number before `unit`, as in "128 bytes smem"; 0 if there is none.
static unsigned findCount(llvm::StringRef line, llvm::StringRef unit) {
  size_t end = line.find(unit);
  if (end == llvm::StringRef::npos)
    return 0;
  llvm::StringRef before = line.take_front(end).rtrim();
  unsigned count = 0;
  before.substr(before.find_last_not_of("0123456789") + 1)
      .getAsInteger(10, count);
  return count;
}

/// Reads what both assemblers report of each function when asked to be verbose.
static std::vector<FunctionResources> parseReport(llvm::StringRef report) {
  std::vector<FunctionResources> functions;
  llvm::SmallVector<llvm::StringRef> lines;
  report.split(lines, '\n');
  for (llvm::StringRef line : lines) {
    llvm::StringRef name =
        line.split("ptxas info    : Function properties for ").second.trim();
    if (!name.empty())
      functions.push_back({name.str()});
    if (functions.empty())
      continue;
    FunctionResources &function = functions.back();
    if (line.contains(" bytes stack frame")) {
      function.stackBytes = findCount(line, "bytes stack frame");
      function.spillBytes = findCount(line, "bytes spill stores") +
                            findCount(line, "bytes spill loads");
    } else if (line.contains(": Used ")) {
      function.registers = findCount(line, "registers");
      function.sharedBytes = findCount(line, "bytes smem");
    }
  }
  return functions;
}

//===----------------------------------------------------------------------===//
// ptxas
//===----------------------------------------------------------------------===//

namespace {

class Ptxas : public Assembler {
public:
  explicit Ptxas(std::string program) : program(std::move(program)) {}
  llvm::Expected<Cubin> assemble(llvm::StringRef ptx,
                                 const Arch &arch) const final;

private:
  std::string program;
};

/// A file that is removed with the object.
struct TemporaryFile {
  static llvm::Expected<TemporaryFile> create(llvm::StringRef suffix) {
    TemporaryFile file;
    if (std::error_code error =
            llvm::sys::fs::createTemporaryFile("tcc", suffix, file.path))
      return llvm::errorCodeToError(error);
    file.remover.setFile(file.path);
    return file;
  }
  std::string read() const {
    auto buffer = llvm::MemoryBuffer::getFile(path);
    return buffer ? (*buffer)->getBuffer().str() : "";
  }

  llvm::SmallString<128> path;
  llvm::FileRemover remover;
};

} // namespace

static llvm::Error writeFile(llvm::StringRef path, llvm::StringRef text) {
  std::error_code error;
  llvm::raw_fd_ostream stream(path, error);
  if (error)
    return llvm::errorCodeToError(error);
  stream << text;
  stream.close();
  if (!stream.has_error())
    return llvm::Error::success();
  error = stream.error();
  stream.clear_error();
  return llvm::errorCodeToError(error);
}

llvm::Expected<Cubin> Ptxas::assemble(llvm::StringRef ptx,
                                      const Arch &arch) const {
  auto input = TemporaryFile::create("ptx");
  if (!input)
    return input.takeError();
  auto output = TemporaryFile::create("cubin");
  if (!output)
    return output.takeError();
  auto report = TemporaryFile::create("log");
  if (!report)
    return report.takeError();
  if (llvm::Error error = writeFile(input->path, ptx))
    return error;
  std::string target = "-arch=" + arch.name;
  std::string failure;
  int code = llvm::sys::ExecuteAndWait(
      program, {program, "-v", target, input->path, "-o", output->path},
      std::nullopt, {"", report->path, report->path}, 0, 0, &failure);
  std::string text = report->read();
  if (code != 0)
    return llvm::createStringError(program + " cannot assemble for " +
                                   arch.name + ": " + failure +
                                   llvm::StringRef(text).rtrim().str());
  std::string bytes = output->read();
  return Cubin{{bytes.begin(), bytes.end()}, parseReport(text)};
}

llvm::Expected<std::unique_ptr<Assembler>> Assembler::findPtxas() {
  auto program = findToolkitFile("ptxas", {"bin/ptxas"});
  if (!program)
    return program.takeError();
  return std::make_unique<Ptxas>(*program);
}

//===----------------------------------------------------------------------===//
// nvJitLink
//===----------------------------------------------------------------------===//

namespace {

/// The functions of nvJitLink.h that are used; they return 0 on success.
class NvJitLink : public Assembler {
public:
  static llvm::Expected<std::unique_ptr<Assembler>> open(const char *path);
  llvm::Expected<Cubin> assemble(llvm::StringRef ptx,
                                 const Arch &arch) const final;

private:
  using Handle = void *;
  using GetSize = int (*)(Handle, size_t *);
  using GetText = int (*)(Handle, char *);
  static constexpr int kInputPtx = 2; ///< NVJITLINK_INPUT_PTX

  static std::string get(Handle handle, GetSize getSize, GetText getText);

  int (*create)(Handle *, uint32_t count, const char **options);
  int (*destroy)(Handle *);
  int (*addData)(Handle, int kind, const void *data, size_t size,
                 const char *name);
  int (*complete)(Handle);
  GetSize getErrorSize, getInfoSize, getCubinSize;
  GetText getError, getInfo, getCubin;
};

} // namespace

llvm::Expected<std::unique_ptr<Assembler>> NvJitLink::open(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL); // stays open
  if (!library)
    return llvm::createStringError("cannot open nvJitLink: " +
                                   llvm::Twine(dlerror()));
  auto link = std::make_unique<NvJitLink>();
  std::string missing;
  auto find = [&](auto &function, const char *name) {
    void *address = dlsym(library, name);
    function = reinterpret_cast<std::decay_t<decltype(function)>>(address);
    if (!address)
      missing = name;
  };
  find(link->create, "nvJitLinkCreate");
  find(link->destroy, "nvJitLinkDestroy");
  find(link->addData, "nvJitLinkAddData");
  find(link->complete, "nvJitLinkComplete");
  find(link->getErrorSize, "nvJitLinkGetErrorLogSize");
  find(link->getError, "nvJitLinkGetErrorLog");
  find(link->getInfoSize, "nvJitLinkGetInfoLogSize");
  find(link->getInfo, "nvJitLinkGetInfoLog");
  find(link->getCubinSize, "nvJitLinkGetLinkedCubinSize");
  find(link->getCubin, "nvJitLinkGetLinkedCubin");
  if (!missing.empty())
    return llvm::createStringError(llvm::Twine(path) + " lacks " + missing);
  return link;
}

std::string NvJitLink::get(Handle handle, GetSize getSize, GetText getText) {
  size_t size = 0;
  if (getSize(handle, &size) != 0)
    return "";
  std::string text(size, '\0');
  return getText(handle, text.data()) == 0 ? text : "";
}

llvm::Expected<Cubin> NvJitLink::assemble(llvm::StringRef ptx,
                                          const Arch &arch) const {
  std::string target = "-arch=" + arch.name;
  const char *options[] = {target.c_str(), "-O3", "-Xptxas=-v"};
  Handle handle = nullptr;
  if (create(&handle, std::size(options), options) != 0)
    return llvm::createStringError("nvJitLink does not know " + arch.name);
  auto release = llvm::make_scope_exit([&] { destroy(&handle); });
  // The text ends with a zero, which counts.
  std::string text = ptx.str();
  if (addData(handle, kInputPtx, text.c_str(), text.size() + 1, "kernels") ||
      complete(handle))
    return llvm::createStringError("nvJitLink cannot assemble for " +
                                   arch.name + ": " +
                                   get(handle, getErrorSize, getError));
  std::string bytes = get(handle, getCubinSize, getCubin);
  return Cubin{{bytes.begin(), bytes.end()},
               parseReport(get(handle, getInfoSize, getInfo))};
}

llvm::Expected<std::unique_ptr<Assembler>> Assembler::findNvJitLink() {
  auto path = findToolkitFile(
      "nvJitLink", {"lib64/libnvJitLink.so", "lib/libnvJitLink.so",
                    "lib64/libnvJitLink.so.13", "lib/libnvJitLink.so.13",
                    "lib64/libnvJitLink.so.12", "lib/libnvJitLink.so.12"});
  if (!path)
    return path.takeError();
  return NvJitLink::open(path->c_str());
}

llvm::Expected<std::unique_ptr<Assembler>> Assembler::find() {
  auto ptxas = findPtxas();
  if (ptxas)
    return ptxas;
  auto link = findNvJitLink();
  if (link) {
    llvm::consumeError(ptxas.takeError());
    return link;
  }
  return llvm::joinErrors(ptxas.takeError(), link.takeError());
}
