// A slow disk and a slow network, for tests/training/diagnosis.py, which loads
// this before the C library (LD_PRELOAD): each pread, fsync and writev takes as
// many microseconds more as TCC_SLOW_PREAD, .._FSYNC and .._WRITEV say.

#include <cstdlib>
#include <dlfcn.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static void sleepAsLongAs(const char *variable) {
  if (const char *microseconds = std::getenv(variable))
    usleep(static_cast<useconds_t>(std::atoi(microseconds)));
}

template <typename Function> static Function *findNext(const char *name) {
  return reinterpret_cast<Function *>(dlsym(RTLD_NEXT, name));
}

extern "C" {

ssize_t pread(int file, void *bytes, size_t count, off_t offset) {
  static auto *next = findNext<ssize_t(int, void *, size_t, off_t)>("pread");
  sleepAsLongAs("TCC_SLOW_PREAD");
  return next(file, bytes, count, offset);
}

ssize_t pread64(int file, void *bytes, size_t count, off64_t offset) {
  return pread(file, bytes, count, offset);
}

ssize_t writev(int file, const iovec *parts, int count) {
  static auto *next = findNext<ssize_t(int, const iovec *, int)>("writev");
  sleepAsLongAs("TCC_SLOW_WRITEV");
  return next(file, parts, count);
}

int fsync(int file) {
  static auto *next = findNext<int(int)>("fsync");
  sleepAsLongAs("TCC_SLOW_FSYNC");
  return next(file);
}
}
