#include "runtime/base/MappedFile.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace tcc;
using namespace tcc::runtime;

MappedFile::~MappedFile() {
  if (address)
    munmap(const_cast<std::byte *>(address), size);
}

Result<MappedFile> MappedFile::open(const std::string &path) {
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info;
  if (file < 0 || fstat(file, &info) != 0) {
    int reason = errno;
    if (file >= 0)
      close(file);
    return makeError(Code::Io, "cannot open '", path,
                     "': ", std::strerror(reason));
  }
  MappedFile mapped;
  void *address = nullptr;
  bool isFile = S_ISREG(info.st_mode);
  if (isFile && info.st_size > 0)
    address = mmap(nullptr, info.st_size, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (!isFile || address == MAP_FAILED)
    return makeError(Code::Io, "cannot read '", path, "'",
                     isFile ? "" : ": not a file");
  mapped.address = static_cast<const std::byte *>(address);
  mapped.size = address ? info.st_size : 0;
  return mapped;
}
