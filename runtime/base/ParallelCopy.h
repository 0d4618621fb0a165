//===- ParallelCopy.h - Large copies by several threads ---------*- C++ -*-===//
#ifndef TCC_RUNTIME_BASE_PARALLELCOPY_H
#define TCC_RUNTIME_BASE_PARALLELCOPY_H

#include <cstddef>

namespace tcc::runtime {

/// Copies `bytes` between ranges that do not overlap, as memcpy does. One core
/// does not move as much as memory can: a large copy that something waits for
/// is divided among threads, some of which are begun for it, as far as the
/// process has CPUs. Without threads the caller copies alone.
void copyInParallel(void *to, const void *from, size_t bytes);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_BASE_PARALLELCOPY_H
