#include "tools/report/MemorySection.h"

#include "tools/cli/MemoryUse.h"

#include <algorithm>
#include <map>
#include <set>

using namespace tcc;
using namespace tcc::tools;

/// Colours that are told apart, and places that are.
static constexpr size_t kMostGroups = 6, kMostPlaces = 300;
static constexpr char kRest[] = "the rest", kNoModule[] = "no module";

//===----------------------------------------------------------------------===//
// Groups of modules
//===----------------------------------------------------------------------===//

/// The first `depth` names of a path.
static std::string cut(const std::string &path, size_t depth) {
  size_t at = 0;
  for (size_t i = 0; i < depth && at != std::string::npos; ++i)
    at = path.find('.', i == 0 ? 0 : at + 1);
  return path.substr(0, at);
}

std::vector<std::string>
tools::groupModules(const std::vector<std::string> &paths) {
  constexpr size_t kDeepest = 16, kMost = 2 * kMostGroups;
  size_t depth = 1;
  auto count = [&](size_t at) {
    std::set<std::string> groups;
    for (const std::string &path : paths)
      groups.insert(cut(path, at));
    return groups.size();
  };
  while (depth < kDeepest && (count(depth) < 3 || count(depth + 1) <= kMost))
    ++depth;
  std::vector<std::string> groups;
  for (const std::string &path : paths)
    groups.push_back(cut(path, depth));
  return groups;
}

namespace {

/// The tensors of an arena by what they are drawn as.
struct Grouping {
  std::vector<std::string> names; ///< in the order of the first use
  std::vector<size_t> of;         ///< the name of each tensor
};

} // namespace

/// The groups that hold most for longest have names of their own.
static Grouping group(const ArenaUse &arena) {
  std::vector<std::string> modules;
  for (const TensorUse &tensor : arena.tensors)
    modules.push_back(tensor.module);
  std::vector<std::string> groups = groupModules(modules);
  std::map<std::string, double> held;
  for (size_t i = 0; i < groups.size(); ++i) {
    const TensorUse &tensor = arena.tensors[i];
    if (groups[i].empty())
      groups[i] = kNoModule;
    held[groups[i]] +=
        double(tensor.bytes) * double(tensor.end - tensor.begin + 1);
  }
  // Most first: sums are negative.
  std::vector<std::pair<double, std::string>> ranked;
  for (const auto &[name, sum] : held)
    ranked.emplace_back(-sum, name);
  std::ranges::sort(ranked);
  bool hasRest = ranked.size() > kMostGroups;
  ranked.resize(std::min(ranked.size(), kMostGroups));
  std::map<std::pair<int64_t, size_t>, std::string> order; // by first use
  for (size_t i = 0; i < groups.size(); ++i)
    order[{arena.tensors[i].begin, i}] = groups[i];
  Grouping found;
  for (const auto &[use, name] : order)
    if (std::ranges::any_of(ranked,
                            [&](auto &it) { return it.second == name; }) &&
        std::ranges::find(found.names, name) == found.names.end())
      found.names.push_back(name);
  if (hasRest)
    found.names.emplace_back(kRest);
  for (const std::string &name : groups)
    found.of.push_back(std::min<size_t>(std::ranges::find(found.names, name) -
                                            found.names.begin(),
                                        found.names.size() - 1));
  return found;
}

//===----------------------------------------------------------------------===//
// The entry point that needs most
//===----------------------------------------------------------------------===//

/// The positions with the most bytes, one of each of several equal stretches.
static std::vector<size_t> choosePlaces(const std::vector<int64_t> &live) {
  size_t step =
      std::max<size_t>(1, (live.size() + kMostPlaces - 1) / kMostPlaces);
  std::vector<size_t> places;
  for (size_t i = 0; i < live.size(); i += step) {
    auto end = live.begin() + std::min(live.size(), i + step);
    places.push_back(std::max_element(live.begin() + i, end) - live.begin());
  }
  return places;
}

static Chart drawTimeline(const ArenaUse &arena,
                          const std::vector<int64_t> &live, size_t peak) {
  Grouping grouping = group(arena);
  Chart chart = {.kind = Chart::Kind::stack,
                 .title = "In use while " + arena.entry + " runs",
                 .x = {"command", "count"},
                 .y = {"in the arena", "bytes", false, true}};
  bool isNamed = grouping.names != std::vector<std::string>{kNoModule};
  chart.about =
      isNamed ? "Bytes by the module that computes them, one command after the "
                "other."
              : "Bytes, one command after the other. The model does not say "
                "which module its nodes are of.";
  chart.hasSteps = true;
  std::vector<size_t> places = choosePlaces(live);
  for (const std::string &name : grouping.names) {
    Series &series = chart.series.emplace_back();
    series.name = isNamed ? name : "values";
    // Positions are two a command.
    for (size_t i = 0; i < places.size(); ++i)
      series.x.push_back(double(i * live.size() / places.size()) / 2);
    series.y.resize(places.size());
  }
  for (size_t i = 0; i < arena.tensors.size(); ++i) {
    const TensorUse &tensor = arena.tensors[i];
    auto begin = std::ranges::lower_bound(places, size_t(tensor.begin));
    auto end = std::ranges::upper_bound(places, size_t(tensor.end));
    for (auto at = begin; at < end; ++at)
      chart.series[grouping.of[i]].y[at - places.begin()] +=
          double(tensor.bytes);
  }
  chart.marks = {{double(peak) / 2, "peak"}};
  return chart;
}

static Table listAtPeak(const ArenaUse &arena, int64_t peak, int64_t bytes) {
  Table table("In the arena at its peak", {{"node"},
                                           {"module"},
                                           {"bytes", "bytes"},
                                           {"of the peak", "share", true},
                                           {"from command", "count"},
                                           {"to command", "count"}});
  for (const TensorUse *tensor : listLive(arena, peak))
    table.add({tensor->node, tensor->module, tensor->bytes,
               double(tensor->bytes) / double(bytes), tensor->begin / 2,
               tensor->end / 2});
  return table;
}

static Table listEntries(const std::vector<ArenaUse> &arenas) {
  Table table("Entry points, which share the arena",
              {{"entry point"},
               {"arena", "bytes"},
               {"in use at most", "bytes"},
               {"tensors", "count"},
               {"commands", "count"}});
  for (const ArenaUse &arena : arenas) {
    std::vector<int64_t> live = getLiveBytes(arena);
    int64_t most = live.empty() ? 0 : *std::ranges::max_element(live);
    table.add({arena.entry, arena.bytes, most, arena.tensors.size(),
               arena.positions / 2});
  }
  return table;
}

void tools::addArenas(Section &section, const std::vector<ArenaUse> &arenas) {
  const ArenaUse *largest = nullptr;
  std::vector<int64_t> live;
  size_t peak = 0;
  for (const ArenaUse &arena : arenas) {
    std::vector<int64_t> own = getLiveBytes(arena);
    size_t at = std::ranges::max_element(own) - own.begin();
    if (own.empty() || (largest && own[at] <= live[peak]))
      continue;
    largest = &arena;
    live = std::move(own);
    peak = at;
  }
  if (!largest || live[peak] <= 0) {
    section.addNote("Nothing lies in the arena.");
    return;
  }
  section.add(drawTimeline(*largest, live, peak));
  section.add(listAtPeak(*largest, int64_t(peak), live[peak]));
  if (arenas.size() > 1)
    section.add(listEntries(arenas));
}
