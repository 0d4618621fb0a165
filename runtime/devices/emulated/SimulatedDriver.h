//===- SimulatedDriver.h - A CUDA driver without a GPU ----------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_EMULATED_SIMULATEDDRIVER_H
#define TCC_RUNTIME_DEVICES_EMULATED_SIMULATEDDRIVER_H

#include "runtime/devices/cuda/Driver.h"

/// The table of a driver whose devices are this machine's CPU. Modules are
/// loaded from an EmulatedModule. The ordinal of a device says in which order
/// it runs what may run at the same time: 0 forward, 1 in reverse, others at
/// random with the ordinal as seed. Misuse is an error that names it.
extern "C" __attribute__((visibility("default")))
const tcc::runtime::cuda::Driver *
tcc_emulated_driver();

#endif // TCC_RUNTIME_DEVICES_EMULATED_SIMULATEDDRIVER_H
