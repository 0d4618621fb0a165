//===- LaneOrder.h - What comes before what in a block ----------*- C++ -*-===//
#ifndef TCC_RUNTIME_PACKAGE_LANEORDER_H
#define TCC_RUNTIME_PACKAGE_LANEORDER_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace tcc::runtime {

/// Follows the commands of one block: those of a lane are done in their order,
/// and an event orders what its lane did before with what waits for it.
class LaneOrder {
public:
  explicit LaneOrder(size_t lanes)
      : seen(lanes, std::vector<uint32_t>(lanes)) {}

  /// The lane does something.
  void add(size_t lane) { ++seen[lane][lane]; }
  void record(size_t lane, uint32_t event) { events[event] = seen[lane]; }
  /// False if nothing in the block recorded the event before.
  bool wait(size_t lane, uint32_t event);
  /// How many commands of `other` are done before what `lane` does next.
  uint32_t countDone(size_t lane, size_t other) const {
    return seen[lane][other];
  }
  /// A lane that did something which lane 0 does not come after.
  std::optional<size_t> findUnjoined() const;

private:
  /// [lane][other]: commands of `other` done before what `lane` does next.
  std::vector<std::vector<uint32_t>> seen;
  std::map<uint32_t, std::vector<uint32_t>> events; ///< likewise
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_PACKAGE_LANEORDER_H
