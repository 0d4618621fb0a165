#include "runtime/ranks/Patience.h"

#include "runtime/ranks/Loss.h"

#include <charconv>
#include <cstdlib>

using namespace tcc;
using namespace tcc::runtime;

/// Leaves `time` as it is where the variable is not set.
static Status readTime(const Environment &environment, const char *name,
                       std::chrono::milliseconds &time) {
  constexpr int64_t kLeast = 100, kMost = 86'400'000;
  const char *given = environment(name);
  if (!given)
    return Status();
  std::string_view text = given;
  double seconds = 0;
  auto [rest, failure] =
      std::from_chars(text.data(), text.data() + text.size(), seconds);
  bool isNumber = failure == std::errc() && rest == text.data() + text.size();
  double found = seconds * 1000;
  if (!isNumber || !(found == 0 || (found >= kLeast && found <= kMost)))
    return makeError(Code::Usage, name, " is '", text, "', expected ",
                     describeTime(kLeast), " to ", describeTime(kMost),
                     ", or 0");
  time = std::chrono::milliseconds(int64_t(found));
  return Status();
}

Result<Patience> runtime::readPatience(const Environment &environment) {
  Patience patience;
  Status status = readTime(environment, "TCC_HEARTBEAT", patience.silence);
  if (status.ok())
    status =
        readTime(environment, "TCC_COLLECTIVE_TIMEOUT", patience.collective);
  if (!status.ok())
    return status;
  return patience;
}

Result<Patience> runtime::readPatience() {
  return readPatience([](const char *name) { return std::getenv(name); });
}
