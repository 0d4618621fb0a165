#include "compiler/codegen/Targets.h"

#include "compiler/codegen/cpu/CpuTarget.h"
#include "compiler/codegen/cuda/CudaTarget.h"

namespace tcc {

void registerAllTargets() {
  static const bool areRegistered = [] {
    registerTarget(cpu::getCpuTarget());
    registerTarget(cuda::getCudaTarget());
    return true;
  }();
  (void)areRegistered;
}

} // namespace tcc
