//===- SimulatedCudnn.h - cuDNN without a GPU -------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_EMULATED_SIMULATEDCUDNN_H
#define TCC_RUNTIME_DEVICES_EMULATED_SIMULATEDCUDNN_H

#include "runtime/devices/libraries/Cudnn.h"

/// A library for the simulated driver: it computes what a graph's descriptors
/// say, in order with the other work of a stream, and refuses those that cuDNN
/// would not take. Its heuristics also propose engines that must not be chosen.
extern "C" __attribute__((visibility("default")))
const tcc::runtime::cuda::Cudnn *
tcc_emulated_cudnn();

#endif // TCC_RUNTIME_DEVICES_EMULATED_SIMULATEDCUDNN_H
