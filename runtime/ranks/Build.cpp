#include "runtime/ranks/Build.h"

#include "runtime/ranks/Cores.h"
#include "runtime/ranks/Watch.h"

#include <cstdio>

using namespace tcc;
using namespace tcc::runtime;

/// Raised with each change of what ranks say to each other, or in which order,
/// that the sizes below do not show.
static constexpr unsigned kWire = 3;

/// FNV-1a of the sizes and places of what ranks exchange as it lies in memory.
static constexpr uint32_t hashLayout() {
  constexpr size_t kParts[] = {sizeof(Message),
                               offsetof(Message, own),
                               offsetof(Message, loss),
                               sizeof(Sighting),
                               sizeof(CollectiveCall),
                               offsetof(CollectiveCall, of),
                               sizeof(Loss),
                               offsetof(Loss, why),
                               sizeof(HubPlace),
                               offsetof(HubPlace, hosts),
                               sizeof(Cores),
                               size_t(kLastCause),
                               size_t(kLastCollectiveKind)};
  uint32_t hash = 2166136261u;
  for (size_t part : kParts)
    hash = (hash ^ uint32_t(part)) * 16777619u;
  return hash;
}

std::string runtime::nameBuild() {
  char text[kBuildBytes];
  std::snprintf(text, sizeof(text), "tcc %s, wire %u.%08x", TCC_VERSION, kWire,
                hashLayout());
  return text;
}
