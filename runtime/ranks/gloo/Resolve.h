//===- Resolve.h - Addresses of the rendezvous ------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_RANKS_GLOO_RESOLVE_H
#define TCC_RUNTIME_RANKS_GLOO_RESOLVE_H

#include "runtime/base/Status.h"

#include <asio.hpp>
#include <chrono>
#include <string>

namespace tcc::runtime::ranks {

/// The addresses of a host, of which there is one at least. An unknown name is
/// looked up again until the deadline, as that of a pod comes after the pod;
/// then it is Code::Usage.
Result<asio::ip::tcp::resolver::results_type>
resolve(asio::io_context &io, const std::string &host, uint16_t port,
        std::chrono::steady_clock::time_point deadline);

} // namespace tcc::runtime::ranks

#endif // TCC_RUNTIME_RANKS_GLOO_RESOLVE_H
