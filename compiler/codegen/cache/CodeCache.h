//===- CodeCache.h - Code that was made before, on disk ---------*- C++ -*-===//
//
// A folder with a file for each piece of code, named by a digest of all that
// the code follows from. Files are written under other names and renamed, so
// that any number of processes may share a folder. An entry begins with the
// BLAKE3 of what follows; one that does not match is removed and made again.
// LLVM's pruneCache removes what was not read for longest.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_CACHE_CODECACHE_H
#define TCC_COMPILER_CODEGEN_CACHE_CODECACHE_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/LogicalResult.h"
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace tcc::codegen {

using Code = llvm::SmallVector<char, 0>;

/// All functions are thread-safe.
class CodeCache {
public:
  struct Limits {
    uint64_t bytes = uint64_t(2) << 30;
    /// The folder is measured at most this often, by all processes together.
    std::chrono::seconds interval = std::chrono::minutes(20);
  };

  /// Makes `folder`, for this user alone, where it is missing. An error if it
  /// is no folder, is another user's or others may write into it: an entry is
  /// code.
  static llvm::Expected<std::unique_ptr<CodeCache>> open(llvm::StringRef folder,
                                                         const Limits &limits);
  static llvm::Expected<std::unique_ptr<CodeCache>>
  open(llvm::StringRef folder) {
    return open(folder, Limits());
  }

  /// What was added as `key`, which has letters and digits; nothing if there is
  /// none, or if it is damaged.
  std::optional<Code> find(llvm::StringRef key);
  /// An entry that cannot be written is none; see getProblem.
  void add(llvm::StringRef key, llvm::ArrayRef<char> code);
  /// Removes entries beyond the limit.
  void prune() const;

  /// Entries that were found, and those that were not.
  int64_t getHits() const { return hits; }
  int64_t getMisses() const { return misses; }
  /// Why the first entry that was not written was not; empty if all were.
  std::string getProblem() const;

private:
  CodeCache(llvm::StringRef folder, const Limits &limits)
      : folder(folder), limits(limits) {}
  std::string getPath(llvm::StringRef key) const;
  std::optional<Code> read(const std::string &path) const;
  llvm::Error write(const std::string &path, llvm::ArrayRef<char> code) const;

  std::string folder;
  Limits limits;
  std::atomic<int64_t> hits = 0, misses = 0;
  mutable std::mutex mutex;
  std::string problem;
};

/// The code of `key` from `cache`, which may be null, or what `make` returns: a
/// FailureOr<Code>.
template <typename Make>
auto findOrMake(CodeCache *cache, llvm::StringRef key, Make make) {
  decltype(make()) code;
  if (cache)
    if (std::optional<Code> found = cache->find(key)) {
      code = std::move(*found);
      return code;
    }
  code = make();
  if (cache && llvm::succeeded(code))
    cache->add(key, *code);
  return code;
}

} // namespace tcc::codegen

#endif // TCC_COMPILER_CODEGEN_CACHE_CODECACHE_H
