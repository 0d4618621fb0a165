#include "tools/tcc-run/diagnosis/ThreadTimes.h"

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <fstream>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

Result<ThreadTimes> tools::readThreadTimes(const std::string &root) {
  const std::string path = root + "/proc/thread-self/schedstat";
  std::ifstream file(path);
  std::string text;
  if (!std::getline(file, text))
    return makeError(Code::Io, "cannot read '", path, "'");
  uint64_t ran = 0, delayed = 0;
  if (std::sscanf(text.c_str(), "%" SCNu64 " %" SCNu64, &ran, &delayed) != 2)
    return makeError(Code::BadData, "'", path, "' is '", text,
                     "', expected nanoseconds that the thread ran and waited");
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  return ThreadTimes{std::chrono::duration<double>(now).count(),
                     double(ran) / 1e9, double(delayed) / 1e9};
}
