//===- PlannedMemory.h - What a program allocates ---------------*- C++ -*-===//
#ifndef TCC_RUNTIME_BASE_PLANNEDMEMORY_H
#define TCC_RUNTIME_BASE_PLANNEDMEMORY_H

#include <cstdint>

namespace tcc::runtime {

/// What a launch on a device that may fault has to say which index was bad.
inline constexpr int64_t kFaultBytes = 16;
/// What a lane of a device copies at once between places that overlap, at most:
/// enough to keep it busy.
inline constexpr int64_t kPassageBytes = 1 << 20;
/// What the workspace of a library is a multiple of, in bytes: cuBLASLt wants
/// it to begin there.
inline constexpr uint64_t kWorkspaceAlignment = 256;
/// What a lane of a device that launches has for a library; wraps near 2^64.
constexpr uint64_t alignWorkspace(uint64_t bytes) {
  return (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment *
         kWorkspaceAlignment;
}

/// Bytes of a context or a session, as `tcc --json` plans them: all but inputs
/// and outputs with their copies, and what the host keeps of commands.
struct PlannedMemory {
  uint64_t constants = 0; ///< that its entries read; shared by contexts
  uint64_t variables = 0; ///< of a session
  uint64_t states = 0;
  uint64_t arena = 0;
  uint64_t workers = 0;   ///< scratch of all threads
  uint64_t workspace = 0; ///< of libraries
  uint64_t faults = 0;    ///< what launches on a device say of indices
  uint64_t passage = 0;   ///< of copies on a device that overlap, all lanes
  uint64_t copies = 0;    ///< of variables, that checkpoints are written from

  uint64_t total() const {
    return constants + variables + states + arena + workers + workspace +
           faults + passage + copies;
  }
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_BASE_PLANNEDMEMORY_H
