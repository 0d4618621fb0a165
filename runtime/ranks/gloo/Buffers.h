//===- Buffers.h - Gloo's buffers, whose waits can be ended -----*- C++ -*-===//
//
// Gloo tells a buffer that its connection failed only while the transfer waits
// for its turn there. Who waits for one that has begun, as of a message that
// has come in part, waits until the timeout. So each buffer of a call is known
// here, and the waits of all of them can be ended from another thread.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_RANKS_GLOO_BUFFERS_H
#define TCC_RUNTIME_RANKS_GLOO_BUFFERS_H

#include <gloo/rendezvous/context.h>
#include <gloo/transport/context.h>

#include <mutex>
#include <set>

namespace tcc::runtime::ranks {

/// The connections of another context, with buffers whose waits can be ended.
/// Its buffers do not outlive it.
class BufferContext final : public gloo::transport::Context {
public:
  explicit BufferContext(std::shared_ptr<gloo::transport::Context> connections)
      : gloo::transport::Context(connections->rank, connections->size),
        connections(std::move(connections)) {}

  std::unique_ptr<gloo::transport::Pair> &getPair(int rank) override {
    return connections->getPair(rank);
  }
  std::unique_ptr<gloo::transport::Pair> &createPair(int rank) override {
    return connections->createPair(rank);
  }
  std::unique_ptr<gloo::transport::UnboundBuffer>
  createUnboundBuffer(void *data, size_t bytes) override;

  /// All waits, those of now and later ones, throw gloo::IoException; any
  /// thread. Nothing may come in or go out any more: connections are closed.
  void endWaits();

private:
  class Buffer;

  const std::shared_ptr<gloo::transport::Context> connections;
  std::mutex mutex;           ///< guards what follows
  std::set<Buffer *> buffers; ///< that are in use
  bool haveEnded = false;
};

/// Ranks that are connected by a BufferContext.
class RankContext final : public gloo::rendezvous::Context {
public:
  using gloo::rendezvous::Context::Context;

  /// Once, when all are connected.
  void useBuffers() {
    buffers = std::make_shared<BufferContext>(std::move(transportContext_));
    transportContext_ = buffers;
  }
  void endWaits() { buffers->endWaits(); }

private:
  std::shared_ptr<BufferContext> buffers;
};

} // namespace tcc::runtime::ranks

#endif // TCC_RUNTIME_RANKS_GLOO_BUFFERS_H
