//===- Peer.h - The same work done by oneDNN --------------------*- C++ -*-===//
#ifndef TCC_TESTS_BENCH_MATRIX_PEER_H
#define TCC_TESTS_BENCH_MATRIX_PEER_H

#include "tests/bench/matrix/Kernels.h"
#include <functional>

namespace tcc::bench {

/// Runs of oneDNN on its own favourite layouts, prepared outside the run, on
/// one thread.
std::function<void()> peerMatmul(MatmulShape shape);
std::function<void()> peerConvolution(ConvolutionShape shape, bool plainLayout);

} // namespace tcc::bench

#endif // TCC_TESTS_BENCH_MATRIX_PEER_H
