//===- CrashDisk.h - A disk that forgets what was not synced ----*- C++ -*-===//
//
// Records what is written below a folder, and makes the states in which a disk
// may be after the power was lost: what was synced is there; of the rest any
// part, in any order. A write may be torn between blocks of 512 bytes, a name
// may have come or gone before or after any other name of its folder.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_TESTS_RUNTIME_BASE_CRASHDISK_H
#define TCC_TESTS_RUNTIME_BASE_CRASHDISK_H

#include "runtime/base/FileCalls.h"

#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <vector>

namespace tcc::tests {

class CrashDisk final : public io::FileCalls {
public:
  /// The folder exists and is empty.
  explicit CrashDisk(std::string root);

  /// Of a disk that lies: what is synced from now on may be lost, too.
  void ignoreSyncs() { ignoresSyncs = true; }

  /// How many calls changed or synced something so far.
  size_t size() const;

  /// What is there if the power is lost after `count` calls, written into
  /// `folder`, which is made. Of what was not synced `random` keeps each with
  /// the given probability: 0 and 1 keep none and all.
  void restore(size_t count, double kept, std::mt19937 &random,
               const std::string &folder) const;

  int open(const char *path, int flags, mode_t mode) override;
  ssize_t write(int file, const void *bytes, size_t count) override;
  int ftruncate(int file, off_t size) override;
  int fallocate(int file, int mode, off_t offset, off_t count) override;
  int fsync(int file) override;
  int close(int file) override;
  int rename(const char *from, const char *to) override;
  int unlink(const char *path) override;
  int mkdir(const char *path, mode_t mode) override;
  int rmdir(const char *path) override;

private:
  using Id = size_t; ///< of a file or a folder

  /// A name in a folder.
  struct Place {
    Id folder;
    std::string name;

    auto operator<=>(const Place &) const = default;
  };
  enum class Kind { put, take, move, truncate, write, sync };
  struct Event {
    Kind kind;
    Id node;
    Place from = {}, to = {};
    size_t offset = 0; ///< of a write; of truncate the size
    std::string bytes = {};
  };
  struct Node {
    bool isFolder;
    std::string bytes = {};
    std::map<std::string, Id> names = {};
  };

  /// Nothing where that is not below the root.
  std::optional<Place> find(const std::string &path) const;
  std::optional<Id> lookUp(const std::string &path) const;
  void add(Event event);
  Id addNode(bool isFolder);
  std::vector<bool> findKept(size_t count, double kept,
                             std::mt19937 &random) const;
  static void apply(const Event &event, std::vector<Node> &nodes);
  static void tear(Event &event, std::vector<Node> &nodes,
                   std::mt19937 &random);
  static void write(const std::vector<Node> &nodes, Id node,
                    const std::string &path);

  std::string root;
  bool ignoresSyncs = false;
  mutable std::mutex mutex;
  std::vector<Node> nodes; ///< as they are now; the root is the first
  std::vector<Event> events;
  std::map<int, Id> files;      ///< that are open
  std::map<int, size_t> places; ///< where the next write of each goes
  std::set<int> appending;      ///< of these, at the end
};

/// How many states with some of the rest a test tries: TCC_TEST_STATES, or 500.
int countCrashStates();

} // namespace tcc::tests

#endif // TCC_TESTS_RUNTIME_BASE_CRASHDISK_H
