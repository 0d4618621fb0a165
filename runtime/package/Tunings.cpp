#include "runtime/package/Tunings.h"

#include "runtime/base/MappedFile.h"
#include "runtime/base/OutputFile.h"
#include "runtime/package/Digest.h"

#include <algorithm>
#include <charconv>
#include <cmath>

using namespace tcc;
using namespace tcc::runtime;

static constexpr std::string_view kHeader =
    "# the fastest ways: way, microseconds, work\n";
static constexpr std::string_view kKernelWord = "kernel";
/// More than any library lists.
static constexpr int64_t kMaxWay = 1 << 16;

/// Takes what stands before the next separator, or all.
static std::string_view takeUntil(char separator, std::string_view &text) {
  size_t end = std::min(text.find(separator), text.size());
  std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

template <typename T> static bool parse(std::string_view text, T &value) {
  const char *end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && rest == end;
}

static bool parseWay(std::string_view text, Tuning &tuning) {
  tuning.way = Tuning::kKernel;
  if (text == kKernelWord)
    return true;
  if (text.starts_with('{') && text.ends_with('}')) {
    tuning.plan = text;
    return true;
  }
  return parse(text, tuning.way) && tuning.way >= 0 && tuning.way <= kMaxWay;
}

Result<Tunings> Tunings::read(const std::string &path) {
  Result<MappedFile> file = MappedFile::open(path);
  if (!file.ok())
    return file.takeStatus();
  std::string_view text(reinterpret_cast<const char *>(file->bytes().data()),
                        file->bytes().size());
  Tunings tunings;
  tunings.readDigest = digestOf(file->bytes());
  for (size_t number = 1; !text.empty(); ++number) {
    std::string_view line = takeUntil('\n', text), rest = line;
    if (line.empty() || line.starts_with('#'))
      continue;
    Tuning tuning;
    bool isRead = parseWay(takeUntil('\t', rest), tuning) &&
                  parse(takeUntil('\t', rest), tuning.microseconds) &&
                  std::isfinite(tuning.microseconds) &&
                  tuning.microseconds >= 0 && !rest.empty();
    if (!isRead)
      return makeError(Code::BadData, path, ":", number, ": '",
                       line.substr(0, 80),
                       "', expected WAY, MICROSECONDS and WORK with tabs "
                       "between them, as tcc-run tune writes them");
    tunings.set(rest, tuning);
  }
  return tunings;
}

Status Tunings::write(const std::string &path) const {
  auto file = OutputFile::create(path);
  if (!file.ok())
    return file.takeStatus();
  file->write(kHeader);
  for (const auto &[work, tuning] : byWork) {
    char microseconds[32];
    auto end = std::to_chars(microseconds, std::end(microseconds),
                             tuning.microseconds, std::chars_format::fixed, 2);
    file->write(concat(!tuning.plan.empty() ? tuning.plan
                       : tuning.way < 0     ? std::string(kKernelWord)
                                            : std::to_string(tuning.way),
                       "\t",
                       std::string_view(microseconds, end.ptr - microseconds),
                       "\t", work, "\n"));
  }
  return file->commit();
}

const Tuning *Tunings::find(std::string_view work) const {
  auto found = byWork.find(work);
  return found == byWork.end() ? nullptr : &found->second;
}

static constexpr std::string_view kKernelWork = "kernel ";

/// What follows a CPU's name in that of a device.
static constexpr std::string_view kCodeWords = " by code for ";

static std::string nameMachine(std::string_view device, int threads) {
  return concat("by ", threads, threads == 1 ? " thread" : " threads", " of ",
                device);
}

std::string Tunings::findPlan(std::string_view hash, std::string_view cpu,
                              int threads) const {
  std::string prefix = concat(kKernelWork, hash, " ");
  std::string machine = concat(nameMachine(cpu, threads), kCodeWords);
  const Tuning *chosen = nullptr;
  bool isOwn = false; // measured on such a machine
  for (auto at = byWork.lower_bound(prefix);
       at != byWork.end() && at->first.starts_with(prefix); ++at) {
    bool isAlike = at->first.find(machine, prefix.size()) != std::string::npos;
    bool isLonger = !chosen || at->second.microseconds > chosen->microseconds;
    if (isAlike == isOwn ? !isLonger : isOwn)
      continue;
    chosen = &at->second;
    isOwn = isAlike;
  }
  return chosen ? chosen->plan : std::string();
}

std::string runtime::nameKernelWork(std::string_view hash,
                                    std::span<const int64_t> sizes,
                                    std::string_view device, int threads) {
  std::string text = concat(kKernelWork, hash, " ");
  for (int64_t size : sizes)
    text += concat(size, "x");
  if (!sizes.empty())
    text.back() = ' ';
  text += nameMachine(device, threads);
  // Names may come from a damaged file; a work is part of a line.
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' ' || c == 127; }, '?');
  return text;
}

void Tunings::set(std::string_view work, const Tuning &tuning) {
  byWork.insert_or_assign(std::string(work), tuning);
}
