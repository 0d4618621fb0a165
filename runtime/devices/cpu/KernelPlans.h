//===- KernelPlans.h - Which plan of a kernel is launched -------*- C++ -*-===//
//
// A kernel may have candidates, which do the same by other plans. Of these the
// fastest one that was measured is launched: `tcc-run tune` measures them where
// they stand, with the threads and the data that they have there.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_DEVICES_CPU_KERNELPLANS_H
#define TCC_RUNTIME_DEVICES_CPU_KERNELPLANS_H

#include "runtime/devices/Device.h"
#include "runtime/package/Program_generated.h"

#include <functional>
#include <map>
#include <set>

namespace tcc::runtime {

/// The choices of one stream. One thread at a time.
class KernelPlans {
public:
  /// What is given outlives it; without a program there are no candidates.
  KernelPlans(const format::Program *program, const Tunings &fastest,
              std::string_view cpu, int threads)
      : program(program), fastest(fastest), cpu(cpu), threads(threads) {}

  /// `dispatch`, which has alternatives, with the kernel that is launched. Only
  /// the first time that a kernel has these sizes is its name looked up.
  Dispatch choose(const Dispatch &dispatch);

  /// Measures each kernel for `dispatch`, if that was not done before, and adds
  /// its own one and, if that is faster, the fastest. `launch` runs one.
  void measure(const Dispatch &dispatch,
               const std::function<void(const Dispatch &)> &launch,
               std::vector<Measurement> &measured);

private:
  std::string nameWork(const Dispatch &dispatch) const;
  std::string_view planOf(uint32_t kernel) const {
    return program->kernels()->Get(kernel)->plan()->string_view();
  }

  const format::Program *program;
  const Tunings &fastest;
  std::string_view cpu;
  int threads;
  /// The alternative that is launched, if one is, by kernel and a hash of
  /// sizes.
  std::map<std::pair<uint32_t, size_t>, std::optional<size_t>> choices;
  std::set<std::string> done;
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DEVICES_CPU_KERNELPLANS_H
