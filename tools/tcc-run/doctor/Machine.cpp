#include "tools/tcc-run/doctor/Machine.h"

#include "runtime/base/CpuQuota.h"
#include "runtime/base/PrintText.h"
#include "tools/tcc-run/doctor/Text.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tools;
using namespace tcc::tools::doctor;

Status doctor::unexpected(const std::string &path, std::string_view text,
                          std::string_view expected) {
  return makeError(Code::BadData, "'", path, "' has '", printText(text),
                   "', expected ", expected);
}

Result<std::string> Machine::read(const std::string &path) const {
  errno = 0;
  std::ifstream file(root + path);
  std::ostringstream text;
  // Some files open, and refuse to be read.
  if (file.is_open() && file.peek() != std::ifstream::traits_type::eof())
    text << file.rdbuf();
  if (!file.is_open() || file.bad() || (text.view().empty() && errno != 0))
    return makeError(Code::Io, "cannot read '", path,
                     "': ", std::strerror(errno ? errno : EIO));
  std::string content = std::move(text).str();
  while (content.ends_with('\n'))
    content.pop_back();
  return content;
}

Result<int64_t> Machine::readInteger(const std::string &path) const {
  auto text = read(path);
  if (!text.ok())
    return text.takeStatus();
  if (auto number = parseInteger(*text))
    return *number;
  return unexpected(path, *text, "a whole number");
}

Result<std::string> Machine::readChosen(const std::string &path) const {
  auto text = read(path);
  if (!text.ok())
    return text.takeStatus();
  if (auto chosen = parseChosen(*text))
    return std::move(*chosen);
  return unexpected(path, *text, "one choice in brackets");
}

Result<std::vector<int>> Machine::readList(const std::string &path) const {
  auto text = read(path);
  if (!text.ok())
    return text.takeStatus();
  if (auto numbers = parseList(*text))
    return std::move(*numbers);
  return unexpected(path, *text, "numbers like 0-3,8");
}

bool Machine::exists(const std::string &path) const {
  std::error_code error;
  return std::filesystem::exists(root + path, error);
}

std::vector<std::string> Machine::list(const std::string &path) const {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator place(root + path, error), end;
  for (; !error && place != end; place.increment(error))
    names.push_back(place->path().filename().string());
  std::ranges::sort(names);
  return names;
}

Result<int> Machine::countCpus() const {
  auto mask = calls.affinity();
  if (!mask.ok())
    return mask.takeStatus();
  int cpus = static_cast<int>(mask->size()), quota = cpuQuota(root);
  return quota > 0 ? std::min(cpus, quota) : cpus;
}

std::string Machine::asRoot(const std::string &command) const {
  return calls.isRoot() ? command : "sudo " + command;
}

std::string Machine::writeTo(const std::string &path,
                             const std::string &value) const {
  return concat("echo ", value, " | ", asRoot("tee "), path);
}
