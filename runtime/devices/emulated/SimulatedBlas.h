//===- SimulatedBlas.h - cuBLASLt without a GPU -----------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_EMULATED_SIMULATEDBLAS_H
#define TCC_RUNTIME_DEVICES_EMULATED_SIMULATEDBLAS_H

#include "runtime/devices/libraries/CublasLt.h"

/// A library for the simulated driver: it computes what the descriptions say,
/// in order with the other work of a stream, and refuses those that cuBLASLt
/// would not take.
extern "C" __attribute__((visibility("default")))
const tcc::runtime::cuda::CublasLt *
tcc_emulated_cublaslt();

/// The same, but that descriptions are those of `real`, a table that needs no
/// device for them.
extern "C" __attribute__((visibility("default")))
const tcc::runtime::cuda::CublasLt *
tcc_emulated_cublaslt_with(const tcc::runtime::cuda::CublasLt *real);

#endif // TCC_RUNTIME_DEVICES_EMULATED_SIMULATEDBLAS_H
