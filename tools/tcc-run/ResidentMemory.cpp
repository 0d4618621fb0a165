#include "tools/tcc-run/ResidentMemory.h"

#include <charconv>
#include <fcntl.h>
#include <unistd.h>

using namespace tcc;

/// /proc/self/statm has pages: all that are mapped, then those in memory.
std::optional<uint64_t> tools::readResidentBytes() {
  int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return std::nullopt;
  char text[128];
  ssize_t size = read(file, text, sizeof(text));
  close(file);
  const char *end = text + (size > 0 ? size : 0), *place = text;
  while (place < end && *place != ' ')
    ++place;
  uint64_t pages = 0;
  if (place == end || std::from_chars(place + 1, end, pages).ec != std::errc())
    return std::nullopt;
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}
