#include "tools/cli/MemoryUse.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <sstream>
#include <tuple>

using namespace tcc;
using nlohmann::json;
using nlohmann::ordered_json;

/// Rows of a list; points of a line.
static constexpr size_t kMostTensors = 20, kMostPoints = 400;

std::vector<int64_t> tools::getLiveBytes(const ArenaUse &arena) {
  // A package may say anything: sums must be able to wrap.
  std::vector<uint64_t> sums(size_t(arena.positions) + 1);
  for (const TensorUse &tensor : arena.tensors) {
    sums[tensor.begin] += uint64_t(tensor.bytes);
    sums[tensor.end + 1] -= uint64_t(tensor.bytes);
  }
  std::partial_sum(sums.begin(), sums.end(), sums.begin());
  return std::vector<int64_t>(sums.begin(), sums.end() - 1);
}

/// The largest value of each of several equal stretches.
static std::vector<int64_t> thin(const std::vector<int64_t> &values) {
  size_t step = (values.size() + kMostPoints - 1) / kMostPoints;
  std::vector<int64_t> most;
  for (size_t i = 0; i < values.size(); i += step) {
    auto end = values.begin() + std::min(values.size(), i + step);
    most.push_back(*std::max_element(values.begin() + i, end));
  }
  return most;
}

std::vector<const TensorUse *> tools::listLive(const ArenaUse &arena,
                                               int64_t position) {
  std::vector<const TensorUse *> live;
  for (const TensorUse &tensor : arena.tensors)
    if (tensor.begin <= position && tensor.end >= position)
      live.push_back(&tensor);
  std::ranges::sort(live, [](auto *a, auto *b) {
    return std::pair(b->bytes, a) < std::pair(a->bytes, b);
  });
  return live;
}

/// The largest that are in use at `peak`.
static ordered_json listTensors(const ArenaUse &arena, int64_t peak) {
  std::vector<const TensorUse *> live = tools::listLive(arena, peak);
  live.resize(std::min(live.size(), kMostTensors));
  ordered_json rows = ordered_json::array();
  for (const TensorUse *tensor : live)
    rows.push_back({{"node", tensor->node},
                    {"bytes", tensor->bytes},
                    {"begin", tensor->begin},
                    {"end", tensor->end}});
  return rows;
}

static ordered_json describeArena(const ArenaUse &arena) {
  std::vector<int64_t> live = tools::getLiveBytes(arena);
  auto most = std::max_element(live.begin(), live.end());
  return {{"entry", arena.entry},
          {"bytes", arena.bytes},
          {"positions", arena.positions},
          {"peak_position", most - live.begin()},
          {"peak_bytes", *most},
          {"live_bytes", thin(live)},
          {"tensors", listTensors(arena, most - live.begin())}};
}

// --- What a budget costs ---

// A package may say anything.

static std::string getText(const json &row, const char *name) {
  auto found = row.find(name);
  return found != row.end() && found->is_string() ? found->get<std::string>()
                                                  : "";
}

static double getNumber(const json &row, const char *name) {
  auto numbers = row.find("numbers");
  if (numbers == row.end() || !numbers->is_object())
    return 0;
  auto found = numbers->find(name);
  return found != numbers->end() && found->is_number() ? found->get<double>()
                                                       : 0;
}

static PeakCost getCost(const json &row) {
  constexpr double kMost = 1e18;
  return {int64_t(std::clamp(getNumber(row, "bytes"), 0.0, kMost)),
          getNumber(row, "microseconds")};
}

static void addDecision(EntryRecompute &entry, const json &row) {
  std::string decision = getText(row, "decision");
  PeakCost cost = getCost(row);
  if (decision == "possible")
    entry.possible.push_back(cost);
  if (decision == "recomputed")
    entry.recomputed.push_back({getText(row, "node"), getText(row, "reason"),
                                cost.bytes, cost.microseconds});
  if (decision != "fitted")
    return;
  entry.chosen = cost;
  entry.keptMicroseconds = getNumber(row, "microseconds_unbounded");
}

std::vector<EntryRecompute>
tools::readRecomputes(const std::string &decisions) {
  std::vector<EntryRecompute> recomputes;
  json rows = json::parse(decisions, nullptr, /*allow_exceptions=*/false);
  for (const json &row : rows.is_array() ? rows : json::array()) {
    if (!row.is_object() || getText(row, "pass") != "recompute-values")
      continue;
    std::string entry = getText(row, "entry");
    // The rows of an entry point follow each other.
    if (recomputes.empty() || recomputes.back().entry != entry)
      recomputes.emplace_back().entry = entry;
    addDecision(recomputes.back(), row);
  }
  return recomputes;
}

/// The sum of each node's recomputations, the longest first.
static ordered_json sumByNode(const std::vector<EntryRecompute> &recomputes) {
  struct Sum {
    std::string what;
    int64_t times = 0;
    double bytes = 0, microseconds = 0;
  };
  std::map<std::string, Sum> sums;
  for (const EntryRecompute &entry : recomputes)
    for (const Recomputation &row : entry.recomputed) {
      Sum &sum = sums[row.node];
      sum.what = row.what;
      ++sum.times;
      sum.bytes += double(row.bytes);
      sum.microseconds += row.microseconds;
    }
  std::vector<std::pair<std::string, Sum>> rows(sums.begin(), sums.end());
  std::ranges::sort(rows, [](auto &a, auto &b) {
    return std::tie(b.second.microseconds, a.first) <
           std::tie(a.second.microseconds, b.first);
  });
  ordered_json list = ordered_json::array();
  for (const auto &[node, sum] : rows)
    list.push_back({{"node", node},
                    {"what", sum.what},
                    {"times", sum.times},
                    {"bytes", sum.bytes},
                    {"microseconds", sum.microseconds}});
  return list;
}

static ordered_json makePoint(const std::string &entry, const PeakCost &cost) {
  return {{"entry", entry},
          {"bytes", cost.bytes},
          {"microseconds", cost.microseconds}};
}

ordered_json
tools::describeMemory(const std::vector<ArenaUse> &arenas,
                      const std::vector<EntryRecompute> &recomputes) {
  ordered_json memory = {{"arenas", ordered_json::array()},
                         {"curve", ordered_json::array()},
                         {"fitted", ordered_json::array()}};
  for (const ArenaUse &arena : arenas)
    if (arena.positions > 0)
      memory["arenas"].push_back(describeArena(arena));
  for (const EntryRecompute &entry : recomputes) {
    for (const PeakCost &cost : entry.possible)
      memory["curve"].push_back(makePoint(entry.entry, cost));
    if (!entry.chosen)
      continue;
    ordered_json fitted = makePoint(entry.entry, *entry.chosen);
    fitted["microseconds_unbounded"] = entry.keptMicroseconds;
    memory["fitted"].push_back(std::move(fitted));
  }
  memory["recomputed"] = sumByNode(recomputes);
  return memory;
}

std::string tools::printMemory(const ordered_json &memory) {
  constexpr size_t kMostNamed = 5;
  std::ostringstream text;
  for (const ordered_json &arena : memory["arenas"]) {
    if (arena["tensors"].empty())
      continue;
    text << arena["entry"].get<std::string>() << " has at most "
         << arena["peak_bytes"] << " bytes in its arena, after "
         << arena["peak_position"].get<int64_t>() / 2 << " of "
         << arena["positions"].get<int64_t>() / 2 << " commands:";
    const char *separator = " ";
    for (size_t i = 0; i < std::min(kMostNamed, arena["tensors"].size()); ++i) {
      const ordered_json &tensor = arena["tensors"][i];
      text << separator << tensor["node"].get<std::string>() << " ("
           << tensor["bytes"] << " bytes)";
      separator = ", ";
    }
    text << '\n';
  }
  for (const ordered_json &point : memory["fitted"]) {
    double kept = point["microseconds_unbounded"];
    double more = point["microseconds"].get<double>() - kept;
    if (more > 0)
      text << point["entry"].get<std::string>() << " computes again for "
           << more << " us more than the " << kept
           << " us that it is predicted to take with all values kept\n";
  }
  return text.str();
}
