//===- Gpus.h - Whether there are GPUs to look at ---------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_DOCTOR_GPUS_H
#define TCC_TOOLS_TCCRUN_DOCTOR_GPUS_H

#include "tools/tcc-run/doctor/Check.h"

#include <optional>

namespace tcc::tools::doctor {

/// What a check of GPUs says on a machine that has none of NVIDIA, neither on
/// its bus nor by a driver; nothing where there is one.
std::optional<Finding> withoutGpu(const Machine &machine);

} // namespace tcc::tools::doctor

#endif // TCC_TOOLS_TCCRUN_DOCTOR_GPUS_H
