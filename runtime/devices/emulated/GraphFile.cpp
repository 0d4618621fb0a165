#include "runtime/devices/emulated/GraphFile.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <unistd.h>

using namespace tcc;
using namespace tcc::emulated;
using namespace tcc::runtime;

static std::string describe(const Graph &graph, const Operation &operation) {
  auto find = [&] {
    return std::ranges::find(graph.events, operation.event) -
           graph.events.begin();
  };
  switch (operation.kind) {
  case Operation::Copy:
    return concat("copy ", operation.bytes);
  case Operation::Set:
    return concat("set ", operation.bytes);
  case Operation::Launch:
    return concat("launch ", operation.function->name);
  case Operation::Call:
    return concat("call ", operation.name);
  case Operation::Wait:
    return concat("wait ", find());
  case Operation::Record: // in each replay anew: by the host's clock
    return size_t(find()) < graph.events.size() ? concat("record ", find())
                                                : "time";
  case Operation::Replay: // of no graph
    break;
  }
  return "replay";
}

Status emulated::writeGraph(const Graph &graph) {
  static int number = 0; // one call of the driver at a time
  const char *folder = std::getenv("TCC_EMULATED_GRAPHS");
  if (!folder)
    return Status();
  std::string path = concat(folder, "/", getpid(), "-", ++number, ".graph");
  std::ofstream file(path);
  for (size_t branch = 0; branch < graph.branches.size(); ++branch)
    for (const Operation &operation : graph.branches[branch])
      file << branch << ' ' << describe(graph, operation) << '\n';
  file.close();
  return file ? Status() : makeError(Code::Io, "cannot write '", path, "'");
}
