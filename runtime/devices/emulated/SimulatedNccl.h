//===- SimulatedNccl.h - NCCL without GPUs ----------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_EMULATED_SIMULATEDNCCL_H
#define TCC_RUNTIME_DEVICES_EMULATED_SIMULATEDNCCL_H

#include "runtime/devices/nccl/Nccl.h"

/// A library for the simulated driver, whose ranks are processes of this
/// machine; Gloo moves what they add up. Each call compares itself with that of
/// the others: where number, kind, type, count or root differ, the communicator
/// has an error, and the call stays until it is aborted. Errors are also
/// buffers that are not there, when a call is given or when it is done, that
/// are too short or overlap otherwise than in place; calls with a communicator
/// that has ended or is of another device; and the end of a communicator of
/// which a stream or a graph has calls. By the streams' clocks a call begins
/// with the last rank. The environment says
///
///   TCC_EMULATED_LINK       "MICROSECONDS:BYTES", 20:1024: the time of a
///                           message and how many bytes go in a microsecond
///   TCC_EMULATED_NCCL_LOG   a folder: calls that are done go to rank-N.calls
///   TCC_EMULATED_NCCL_FAULT what goes wrong in this process: "old", the
///                           version; "meeting", which has no end; "error:N"
///                           and "stuck:N", an asynchronous error and no end of
///                           the N-th call
extern "C" __attribute__((visibility("default")))
const tcc::runtime::cuda::Nccl *
tcc_emulated_nccl();

#endif // TCC_RUNTIME_DEVICES_EMULATED_SIMULATEDNCCL_H
