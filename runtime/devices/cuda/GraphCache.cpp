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

CachedGraph *GraphCache::find(const Walk &walk) {
  auto found = std::ranges::find_if(graphs, [&](const CachedGraph &graph) {
    return graph.walk == &walk && graph.entry == walk.entry &&
           std::ranges::equal(graph.symbols, walk.sizes.first(walk.symbols)) &&
           std::ranges::equal(graph.addresses, walk.addresses);
  });
  if (found == graphs.end())
    return nullptr;
  found->lastUse = ++uses;
  return &*found;
}

void GraphCache::insert(const Walk &walk) {
  if (graphs.size() < kMaxGraphs)
    graphs.emplace_back();
  CachedGraph &graph =
      *std::ranges::min_element(graphs, {}, &CachedGraph::lastUse);
  if (graph.exec)
    driver.graphExecDestroy(graph.exec);
  graph = {};
  graph.walk = &walk;
  graph.entry = walk.entry;
  auto symbols = walk.sizes.first(walk.symbols);
  graph.symbols.assign(symbols.begin(), symbols.end());
  graph.addresses.assign(walk.addresses.begin(), walk.addresses.end());
  graph.lastUse = ++uses;
}
