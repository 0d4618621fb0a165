#include "tools/tcc-run/trace/Slices.h"

#include "runtime/package/Names.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

/// The phase, then the module with all that it is part of: "h", "h.0".
static std::vector<std::string> listNames(const format::Launch &launch) {
  std::vector<std::string> names = {format::nameOf(launch.phase())};
  if (!launch.module_() || launch.module_()->size() == 0)
    return names;
  std::string path = launch.module_()->str();
  for (size_t dot = path.find('.'); dot != std::string::npos;
       dot = path.find('.', dot + 1))
    names.push_back(path.substr(0, dot));
  names.push_back(std::move(path));
  return names;
}

std::vector<Slice> tools::listSlices(const TracedRun &run, uint32_t lane) {
  const Walker &walker = run.context->walker();
  std::vector<Slice> slices;
  std::vector<size_t> open; ///< the slices that the last launch is in
  for (const TraceEvent &event : run.reading.events) {
    if (event.lane != lane)
      continue;
    const format::Launch *launch =
        walker.command(event.command).action_as_Launch();
    if (!launch)
      continue;
    std::vector<std::string> names = listNames(*launch);
    size_t shared = 0;
    while (shared < std::min(open.size(), names.size()) &&
           slices[open[shared]].name == names[shared])
      ++shared;
    open.resize(shared);
    for (size_t i = 0; i < names.size(); ++i) {
      if (i >= shared) {
        open.push_back(slices.size());
        slices.push_back({std::move(names[i]), event.begin, event.end});
      }
      slices[open[i]].end = event.end;
    }
  }
  return slices;
}
