#include "runtime/devices/cuda/GraphCache.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

void GraphCache::clear() {
  for (CachedGraph &graph : graphs)
    if (graph.exec)
      driver.graphExecDestroy(graph.exec);
  graphs.clear();
}

CachedGraph *GraphCache::find(const Run &run) {
  auto found = std::ranges::find_if(graphs, [&](const CachedGraph &graph) {
    return graph.run == &run &&
           std::ranges::equal(graph.symbols, run.sizes.first(run.symbols)) &&
           std::ranges::equal(graph.addresses, run.addresses);
  });
  if (found == graphs.end())
    return nullptr;
  found->lastUse = ++uses;
  return &*found;
}

/// A new one, or that of the run which is replaced.
CachedGraph &GraphCache::findPlace(const Run &run) {
  CachedGraph *oldest = nullptr;
  size_t count = 0;
  for (CachedGraph &graph : graphs) {
    if (graph.run != &run)
      continue;
    ++count;
    if (!oldest || graph.lastUse < oldest->lastUse)
      oldest = &graph;
  }
  return count < kGraphsPerRun ? graphs.emplace_back() : *oldest;
}

CachedGraph &GraphCache::insert(const Run &run) {
  CachedGraph &graph = findPlace(run);
  if (graph.exec)
    driver.graphExecDestroy(graph.exec);
  graph = {};
  graph.run = &run;
  auto symbols = run.sizes.first(run.symbols);
  graph.symbols.assign(symbols.begin(), symbols.end());
  graph.addresses.assign(run.addresses.begin(), run.addresses.end());
  graph.lastUse = ++uses;
  return graph;
}
