#include "runtime/base/Plugin.h"

#include <climits>
#include <cstdlib>
#include <dlfcn.h>
#include <unistd.h>

using namespace tcc;
using namespace tcc::runtime;

/// The folder of the library or program that this code is part of.
static std::string ownFolder() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<const void *>(&ownFolder), &info) ||
      !info.dli_fname)
    return ".";
  std::string path = info.dli_fname;
  size_t slash = path.rfind('/');
  // A program that was found in PATH is known by its name alone.
  char program[PATH_MAX];
  ssize_t size = slash == std::string::npos
                     ? readlink("/proc/self/exe", program, sizeof(program))
                     : -1;
  if (size > 0) {
    path.assign(program, size_t(size));
    slash = path.rfind('/');
  }
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

Result<void *> runtime::findInPlugin(const char *name, const char *symbol) {
  const char *given = std::getenv("TCC_PLUGINS");
  void *library = nullptr;
  if (given)
    library = dlopen(concat(given, "/", name).c_str(), RTLD_NOW);
  if (!library)
    library = dlopen(concat(ownFolder(), "/", name).c_str(), RTLD_NOW);
  if (!library)
    library = dlopen(name, RTLD_NOW);
  if (!library)
    return Status(Code::Device, dlerror());
  void *address = dlsym(library, symbol);
  if (!address)
    return makeError(Code::Device, "'", name, "' has no ", symbol);
  return address;
}
