//===- SimulatedNccl.h - NCCL without GPUs ----------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_EMULATED_SIMULATEDNCCL_H
#define TCC_RUNTIME_DEVICES_EMULATED_SIMULATEDNCCL_H

#include "runtime/devices/nccl/Nccl.h"

/// A library for the simulated driver, whose ranks are processes of this
/// machine; Gloo moves what they add up. Each call compares itself with that of
/// the others: where they differ, the communicator has an error from then on,
/// and nothing waits. By the streams' clocks a call begins with the last rank,
/// and takes what TCC_EMULATED_LINK says: "MICROSECONDS:BYTES", the time of a
/// message and how many bytes go in a microsecond. Calls go to rank-N.calls in
/// the folder that TCC_EMULATED_NCCL_LOG names.
extern "C" __attribute__((visibility("default")))
const tcc::runtime::cuda::Nccl *
tcc_emulated_nccl();

#endif // TCC_RUNTIME_DEVICES_EMULATED_SIMULATEDNCCL_H
