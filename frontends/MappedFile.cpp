#include "frontends/MappedFile.h"

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tcc {

std::optional<MappedFile> mapFile(const std::string &path, std::string &error) {
  // A named pipe would block without O_NONBLOCK.
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    error = std::strerror(errno);
    return std::nullopt;
  }
  struct stat status;
  bool isRegular = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  size_t size = isRegular ? status.st_size : 0;
  void *address = nullptr;
  if (size != 0)
    address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  int mapError = errno;
  close(file);
  if (!isRegular) {
    error = "not a regular file";
    return std::nullopt;
  }
  if (address == MAP_FAILED) {
    error = std::strerror(mapError);
    return std::nullopt;
  }
  auto unmap = [size](const void *mapped) {
    if (mapped)
      munmap(const_cast<void *>(mapped), size);
  };
  return MappedFile{std::shared_ptr<const void>(address, unmap),
                    {static_cast<const char *>(address), size}};
}

std::string getRealPath(const std::string &path) {
  char resolved[PATH_MAX];
  return realpath(path.c_str(), resolved) ? resolved : "";
}

} // namespace tcc
