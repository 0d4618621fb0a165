#include "runtime/devices/libraries/Toolkit.h"

#include <cstdlib>
#include <dlfcn.h>

using namespace tcc;
using namespace tcc::runtime;

using Names = std::span<const char *const>;

namespace {

struct OpenedLibrary {
  std::string path;
  void *handle = nullptr;

  explicit operator bool() const { return handle; }
};

} // namespace

static OpenedLibrary openFrom(const std::string &folder, Names names) {
  for (const char *name : names) {
    std::string path = folder.empty() ? name : concat(folder, "/", name);
    if (void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL))
      return {path, handle};
  }
  return {};
}

static OpenedLibrary openAny(const char *places, Names names) {
  for (std::string_view rest = places ? places : ""; !rest.empty();) {
    std::string folder(rest.substr(0, rest.find(':')));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    if (folder.empty())
      continue;
    if (OpenedLibrary library = openFrom(folder, names))
      return library;
  }
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char *prefix = std::getenv(variable))
      if (OpenedLibrary library = openFrom(concat(prefix, "/lib64"), names))
        return library;
  if (OpenedLibrary library = openFrom("", names))
    return library;
  return openFrom("/usr/local/cuda/lib64", names);
}

Status cuda::loadLibrary(Names names, const char *places,
                         std::span<const EntryPoint> entries) {
  OpenedLibrary library = openAny(places, names);
  if (!library)
    return makeError(Code::Device, "there is no ", names.front(),
                     " in TCC_CUDA_LIB, CUDA_HOME, CUDA_PATH, on the loader's "
                     "path and in /usr/local/cuda");
  for (const EntryPoint &entry : entries) {
    void *address = dlsym(library.handle, entry.symbol);
    if (!address)
      return makeError(Code::Device, "'", library.path, "' has no ",
                       entry.symbol);
    *static_cast<void **>(entry.place) = address;
  }
  return Status();
}
