#include "tests/runtime/base/CrashDisk.h"

#include <algorithm>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

using namespace tcc;
using namespace tcc::tests;
namespace fs = std::filesystem;

static constexpr size_t kBlock = 512;

int tests::countCrashStates() {
  const char *text = std::getenv("TCC_TEST_STATES");
  return text ? std::atoi(text) : 500;
}

CrashDisk::CrashDisk(std::string root)
    : root(std::move(root)), nodes({{.isFolder = true}}) {}

size_t CrashDisk::size() const {
  std::lock_guard lock(mutex);
  return events.size();
}

// --- Recording ---------------------------------------------------------------

std::optional<CrashDisk::Place> CrashDisk::find(const std::string &path) const {
  fs::path below = fs::path(path).lexically_relative(root);
  if (below.empty() || *below.begin() == ".." || below == ".")
    return std::nullopt;
  Place place = {0, below.filename()};
  for (const fs::path &name : below.parent_path()) {
    auto found = nodes[place.folder].names.find(name);
    if (found == nodes[place.folder].names.end())
      return std::nullopt;
    place.folder = found->second;
  }
  return place;
}

std::optional<CrashDisk::Id> CrashDisk::lookUp(const std::string &path) const {
  if (fs::path(path).lexically_relative(root) == ".")
    return 0;
  auto place = find(path);
  if (!place)
    return std::nullopt;
  auto found = nodes[place->folder].names.find(place->name);
  return found == nodes[place->folder].names.end()
             ? std::nullopt
             : std::optional(found->second);
}

void CrashDisk::add(Event event) {
  apply(event, nodes);
  events.push_back(std::move(event));
}

CrashDisk::Id CrashDisk::addNode(bool isFolder) {
  nodes.push_back({isFolder});
  return nodes.size() - 1;
}

int CrashDisk::open(const char *path, int flags, mode_t mode) {
  std::lock_guard lock(mutex);
  int file = io::systemCalls().open(path, flags, mode);
  if (file < 0)
    return file;
  std::optional<Id> node = lookUp(path);
  if (auto place = find(path); !node && place && (flags & O_CREAT)) {
    node = addNode(/*isFolder=*/false);
    add({.kind = Kind::put, .node = *node, .to = *place});
  } else if (node && (flags & O_TRUNC)) {
    add({.kind = Kind::truncate, .node = *node});
  }
  if (node) {
    files[file] = *node;
    places[file] = 0;
    if (flags & O_APPEND)
      appending.insert(file);
  }
  return file;
}

ssize_t CrashDisk::write(int file, const void *bytes, size_t count) {
  std::lock_guard lock(mutex);
  ssize_t written = io::systemCalls().write(file, bytes, count);
  if (auto node = files.find(file); written > 0 && node != files.end()) {
    if (appending.contains(file))
      places[file] = nodes[node->second].bytes.size();
    add({.kind = Kind::write,
         .node = node->second,
         .offset = places[file],
         .bytes = {static_cast<const char *>(bytes), size_t(written)}});
    places[file] += written;
  }
  return written;
}

int CrashDisk::ftruncate(int file, off_t size) {
  std::lock_guard lock(mutex);
  int result = io::systemCalls().ftruncate(file, size);
  if (auto node = files.find(file); result == 0 && node != files.end())
    add({.kind = Kind::truncate,
         .node = node->second,
         .offset = static_cast<size_t>(size)});
  return result;
}

int CrashDisk::fallocate(int file, int mode, off_t offset, off_t count) {
  return io::systemCalls().fallocate(file, mode, offset, count);
}

int CrashDisk::fsync(int file) {
  std::lock_guard lock(mutex);
  int result = io::systemCalls().fsync(file);
  if (auto node = files.find(file);
      result == 0 && node != files.end() && !ignoresSyncs)
    add({.kind = Kind::sync, .node = node->second});
  return result;
}

int CrashDisk::close(int file) {
  std::lock_guard lock(mutex);
  files.erase(file);
  appending.erase(file);
  return io::systemCalls().close(file);
}

int CrashDisk::rename(const char *from, const char *to) {
  std::lock_guard lock(mutex);
  std::optional<Id> node = lookUp(from);
  auto source = find(from), target = find(to);
  int result = io::systemCalls().rename(from, to);
  if (result == 0 && node && source && target)
    add({.kind = Kind::move, .node = *node, .from = *source, .to = *target});
  return result;
}

int CrashDisk::unlink(const char *path) {
  std::lock_guard lock(mutex);
  auto place = find(path);
  int result = io::systemCalls().unlink(path);
  if (result == 0 && place)
    add({.kind = Kind::take, .node = 0, .from = *place});
  return result;
}

int CrashDisk::mkdir(const char *path, mode_t mode) {
  std::lock_guard lock(mutex);
  int result = io::systemCalls().mkdir(path, mode);
  if (auto place = find(path); result == 0 && place)
    add({.kind = Kind::put, .node = addNode(/*isFolder=*/true), .to = *place});
  return result;
}

int CrashDisk::rmdir(const char *path) {
  std::lock_guard lock(mutex);
  auto place = find(path);
  int result = io::systemCalls().rmdir(path);
  if (result == 0 && place)
    add({.kind = Kind::take, .node = 0, .from = *place});
  return result;
}

// --- States ------------------------------------------------------------------

void CrashDisk::apply(const Event &event, std::vector<Node> &nodes) {
  std::string &bytes = nodes[event.node].bytes;
  switch (event.kind) {
  case Kind::put:
    nodes[event.to.folder].names[event.to.name] = event.node;
    break;
  case Kind::take:
    nodes[event.from.folder].names.erase(event.from.name);
    break;
  case Kind::move:
    nodes[event.from.folder].names.erase(event.from.name);
    nodes[event.to.folder].names[event.to.name] = event.node;
    break;
  case Kind::truncate:
    bytes.resize(event.offset);
    break;
  case Kind::write:
    bytes.resize(std::max(bytes.size(), event.offset + event.bytes.size()));
    bytes.replace(event.offset, event.bytes.size(), event.bytes);
    break;
  case Kind::sync:
    break;
  }
}

/// Some blocks of the write, which are on the disk before all others.
void CrashDisk::tear(Event &event, std::vector<Node> &nodes,
                     std::mt19937 &random) {
  for (size_t begin = 0; begin < event.bytes.size();) {
    size_t end = std::min((event.offset + begin) / kBlock * kBlock + kBlock -
                              event.offset,
                          event.bytes.size());
    if (random() % 2)
      apply({.kind = Kind::write,
             .node = event.node,
             .offset = event.offset + begin,
             .bytes = event.bytes.substr(begin, end - begin)},
            nodes);
    begin = end;
  }
}

/// What was synced within the first `count` calls, and some of the rest.
std::vector<bool> CrashDisk::findKept(size_t count, double kept,
                                      std::mt19937 &random) const {
  std::vector<bool> isKept(count), isSynced(nodes.size());
  for (size_t i = count; i-- > 0;) {
    const Event &event = events[i];
    if (event.kind == Kind::sync)
      isSynced[event.node] = true;
    bool isOfNames = event.kind == Kind::put || event.kind == Kind::take ||
                     event.kind == Kind::move;
    Id owner = event.kind == Kind::take || event.kind == Kind::move
                   ? event.from.folder
               : isOfNames ? event.to.folder
                           : event.node;
    isKept[i] = isSynced[owner] ||
                std::uniform_real_distribution<>(0, 1)(random) < kept;
  }
  return isKept;
}

void CrashDisk::write(const std::vector<Node> &nodes, Id node,
                      const std::string &path) {
  if (!nodes[node].isFolder) {
    std::ofstream(path, std::ios::binary) << nodes[node].bytes;
    return;
  }
  fs::create_directory(path);
  for (const auto &[name, inner] : nodes[node].names)
    write(nodes, inner, path + "/" + name);
}

void CrashDisk::restore(size_t count, double kept, std::mt19937 &random,
                        const std::string &folder) const {
  std::lock_guard lock(mutex);
  std::vector<bool> isKept = findKept(count, kept, random);
  std::vector<Node> state;
  for (const Node &node : nodes)
    state.push_back({node.isFolder});
  for (size_t i = 0; i < count; ++i) {
    Event event = events[i];
    bool mayTear = kept > 0 && kept < 1 && event.kind == Kind::write;
    if (isKept[i])
      apply(event, state);
    else if (mayTear)
      tear(event, state, random);
  }
  write(state, /*node=*/0, folder);
}
