//===- Prefault.h - Pages of memory before their first use ------*- C++ -*-===//
//
// The system gives memory its pages, cleared, when they are first touched: one
// trap for each 4 KiB, in the middle of a kernel. Asked for many at once it
// takes less time, and another thread can ask.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_BASE_PREFAULT_H
#define TCC_RUNTIME_BASE_PREFAULT_H

#include <atomic>
#include <cstddef>
#include <span>
#include <thread>
#include <vector>

namespace tcc::runtime {

/// Makes the pages of some ranges be there, in their order, while its maker
/// goes on to use them. No byte changes, whoever writes them meanwhile. Where
/// the system cannot, pages come when they are touched, as without it.
class Prefault {
public:
  using Ranges = std::vector<std::span<std::byte>>;

  /// Below that, first uses take as long as a thread is worth.
  static constexpr size_t kLeastBytes = size_t(64) << 20;

  /// Does nothing if the ranges, which outlive it, have fewer bytes than that.
  /// Where the process has one CPU, all is done once this returns.
  explicit Prefault(Ranges ranges);
  /// Whatever is not done stays so.
  ~Prefault();
  Prefault(const Prefault &) = delete;
  Prefault &operator=(const Prefault &) = delete;

  /// What it does, until `stop` is set.
  static void touch(const Ranges &ranges, const std::atomic<bool> &stop);

private:
  void start();

  Ranges ranges;
  std::atomic<bool> stop{false};
  std::thread thread;
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_BASE_PREFAULT_H
