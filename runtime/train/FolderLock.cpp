#include "runtime/train/FolderLock.h"

#include "runtime/base/FileCalls.h"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace tcc;
using namespace tcc::runtime;
using nlohmann::ordered_json;

namespace {

/// A process, as `lock` names it.
struct Owner {
  std::string host, boot;
  int64_t pid = 0;
};

} // namespace

static Owner findOwn() {
  char host[256] = {};
  gethostname(host, sizeof(host) - 1);
  Owner own = {host, "", getpid()};
  std::ifstream("/proc/sys/kernel/random/boot_id") >> own.boot;
  return own;
}

static std::string print(const Owner &owner) {
  return ordered_json{
             {"host", owner.host}, {"boot", owner.boot}, {"pid", owner.pid}}
             .dump(-1, ' ', false, ordered_json::error_handler_t::replace) +
         "\n";
}

/// Nothing where the text is another one, or none yet.
static std::optional<Owner> read(int file) {
  char text[1024];
  ssize_t count = pread(file, text, sizeof(text), 0);
  if (count <= 0)
    return std::nullopt;
  auto document = ordered_json::parse(text, text + count, nullptr,
                                      /*allow_exceptions=*/false);
  auto isText = [&](const char *key) {
    return document.contains(key) && document[key].is_string();
  };
  if (!document.is_object() || !isText("host") || !isText("boot") ||
      !document.contains("pid") || !document["pid"].is_number_integer())
    return std::nullopt;
  return Owner{document["host"], document["boot"], document["pid"]};
}

static std::string describe(const std::optional<Owner> &owner) {
  return owner ? concat("process ", owner->pid, " of host ", owner->host)
               : std::string("another process");
}

/// Whether `file` is still the one of that name.
static bool isNamed(int file, const std::string &path) {
  struct stat own, named;
  return fstat(file, &own) == 0 && stat(path.c_str(), &named) == 0 &&
         own.st_dev == named.st_dev && own.st_ino == named.st_ino;
}

/// Where a file system has no locks the text must do, which of another host
/// says too little.
static bool mayLive(const Owner &owner, const Owner &own) {
  if (owner.host != own.host)
    return true;
  return owner.boot == own.boot && owner.pid != own.pid &&
         (kill(static_cast<pid_t>(owner.pid), 0) == 0 || errno == EPERM);
}

Result<FolderLock> FolderLock::take(const std::string &folder) {
  if (Status status = io::makeFolders(folder); !status.ok())
    return status;
  std::string path = concat(folder, "/lock");
  Owner own = findOwn();
  for (;;) {
    int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0)
      return io::cannotWrite(path, errno);
    bool isLocked = flock(file, LOCK_EX | LOCK_NB) == 0;
    bool isHeld = !isLocked && errno == EWOULDBLOCK;
    if (!isHeld && !isNamed(file, path)) { // who had it removed it
      close(file);
      continue;
    }
    std::optional<Owner> former = read(file);
    FolderLock lock(path, file, former ? describe(former) : "");
    if (isHeld || (!isLocked && former && mayLive(*former, own))) {
      lock.disown();
      return makeError(Code::Usage, "checkpoints in '", folder,
                       "' are written by ", describe(former),
                       isHeld ? "" : ", unless its file 'lock' is stale");
    }
    std::string text = print(own);
    if (ftruncate(file, 0) != 0 ||
        pwrite(file, text.data(), text.size(), 0) != ssize_t(text.size()))
      return io::cannotWrite(path, errno);
    return lock;
  }
}

FolderLock::FolderLock(FolderLock &&other) noexcept
    : path(std::move(other.path)), file(std::exchange(other.file, -1)),
      former(std::move(other.former)) {}

FolderLock::~FolderLock() {
  if (file < 0)
    return;
  unlink(path.c_str());
  close(file);
}

void FolderLock::disown() { close(std::exchange(file, -1)); }
