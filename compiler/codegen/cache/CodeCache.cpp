#include "compiler/codegen/cache/CodeCache.h"

#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/CachePruning.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <sys/stat.h>
#include <unistd.h>

using namespace llvm;

namespace tcc::codegen {

/// pruneCache removes files of no other names.
static constexpr StringLiteral kPrefix = "llvmcache-";

using EntryDigest = std::array<uint8_t, LLVM_BLAKE3_OUT_LEN>;

static EntryDigest digest(ArrayRef<char> code) {
  return BLAKE3::hash(
      {reinterpret_cast<const uint8_t *>(code.data()), code.size()});
}

static Error makeError(const Twine &folder, const Twine &what) {
  return createStringError("'" + folder + "' cannot hold code: " + what);
}

Expected<std::unique_ptr<CodeCache>> CodeCache::open(StringRef folder,
                                                     const Limits &limits) {
  SmallString<128> path(folder.rtrim('/'));
  if (std::error_code error = sys::fs::make_absolute(path))
    return makeError(folder, error.message());
  auto parents = sys::path::parent_path(path);
  std::error_code error = sys::fs::create_directories(parents);
  if (!error)
    error = sys::fs::create_directory(path, /*IgnoreExisting=*/true,
                                      sys::fs::owner_all);
  sys::fs::file_status status;
  if (!error)
    error = sys::fs::status(path, status);
  if (error)
    return makeError(folder, error.message());
  if (!sys::fs::is_directory(status))
    return makeError(folder, "it is no folder");
  if (status.getUser() != geteuid())
    return makeError(folder, "it is another user's");
  if (status.permissions() & (sys::fs::group_write | sys::fs::others_write))
    return makeError(folder, "other users may write into it");
  return std::unique_ptr<CodeCache>(new CodeCache(path, limits));
}

std::string CodeCache::getPath(StringRef key) const {
  SmallString<128> path(folder);
  sys::path::append(path, kPrefix + key);
  return std::string(path);
}

std::optional<Code> CodeCache::read(const std::string &path) const {
  auto file = sys::fs::openNativeFileForRead(path);
  if (!file) {
    consumeError(file.takeError());
    return std::nullopt;
  }
  // When it was read decides what is removed first; file systems may not note
  // it. Where this fails entries go in another order.
  const timespec times[] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
  (void)futimens(*file, times);
  auto buffer = MemoryBuffer::getOpenFile(*file, path, /*FileSize=*/-1,
                                          /*RequiresNullTerminator=*/false);
  sys::fs::closeFile(*file);
  if (!buffer)
    return std::nullopt;
  ArrayRef<char> entry((*buffer)->getBufferStart(), (*buffer)->getBufferSize());
  if (entry.size() >= sizeof(EntryDigest)) {
    ArrayRef<char> code = entry.drop_front(sizeof(EntryDigest));
    EntryDigest expected = digest(code);
    if (std::memcmp(entry.data(), expected.data(), expected.size()) == 0)
      return Code(code.begin(), code.end());
  }
  sys::fs::remove(path);
  return std::nullopt;
}

std::optional<Code> CodeCache::find(StringRef key) {
  std::optional<Code> code = read(getPath(key));
  ++(code ? hits : misses);
  return code;
}

Error CodeCache::write(const std::string &path, ArrayRef<char> code) const {
  // The name is of this process and this call alone.
  static std::atomic<uint64_t> number = 0;
  std::string fresh =
      getPath(("new-" + Twine(getpid()) + "-" + Twine(number++)).str());
  int descriptor = -1;
  if (std::error_code error = sys::fs::openFileForWrite(
          fresh, descriptor, sys::fs::CD_CreateAlways, sys::fs::OF_None,
          sys::fs::owner_read | sys::fs::owner_write))
    return errorCodeToError(error);
  raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
  EntryDigest digest = codegen::digest(code);
  stream.write(reinterpret_cast<const char *>(digest.data()), digest.size());
  stream.write(code.data(), code.size());
  stream.close();
  std::error_code error = stream.error();
  stream.clear_error();
  if (!error)
    error = sys::fs::rename(fresh, path);
  if (error)
    sys::fs::remove(fresh);
  return errorCodeToError(error);
}

void CodeCache::add(StringRef key, ArrayRef<char> code) {
  Error error = write(getPath(key), code);
  if (!error)
    return;
  std::string message = toString(std::move(error));
  std::lock_guard lock(mutex);
  if (problem.empty())
    problem = message;
}

void CodeCache::prune() const {
  CachePruningPolicy policy;
  policy.Interval = limits.interval;
  policy.Expiration = std::chrono::seconds(0);
  policy.MaxSizeBytes = limits.bytes;
  pruneCache(folder, policy);
}

std::string CodeCache::getProblem() const {
  std::lock_guard lock(mutex);
  return problem;
}

} // namespace tcc::codegen
