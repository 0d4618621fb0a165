//===- CollectiveKind.h - What all ranks do together ------------*- C++ -*-===//
#ifndef TCC_RUNTIME_RANKS_COLLECTIVEKIND_H
#define TCC_RUNTIME_RANKS_COLLECTIVEKIND_H

#include <cstdint>
#include <string_view>

namespace tcc::runtime {

/// What all ranks do together in one call.
enum class CollectiveKind : uint8_t {
  AllReduce,
  ReduceScatter,
  AllGather,
  Broadcast,
  Barrier
};
inline constexpr CollectiveKind kLastCollectiveKind = CollectiveKind::Barrier;

/// In which order ranks add up: in one that the transport chooses, or in a tree
/// that makes the sum of subtrees that of their tree (TreeSum).
enum class SumOrder : uint8_t { Any, Tree };

/// The name of a kind in messages: "all-reduce".
std::string_view nameOf(CollectiveKind kind);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_RANKS_COLLECTIVEKIND_H
