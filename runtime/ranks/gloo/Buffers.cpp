#include "runtime/ranks/gloo/Buffers.h"

using namespace tcc::runtime::ranks;
using gloo::transport::UnboundBuffer;
using std::chrono::milliseconds;

/// Knows of an end that came before its wait, too: Gloo's own buffer keeps it
/// until then.
class BufferContext::Buffer final : public UnboundBuffer {
public:
  Buffer(BufferContext &context, void *data, size_t bytes)
      : UnboundBuffer(data, bytes), context(context),
        transfer(context.connections->createUnboundBuffer(data, bytes)) {
    std::lock_guard lock(context.mutex);
    context.buffers.insert(this);
    if (context.haveEnded)
      endWaits();
  }
  ~Buffer() override {
    std::lock_guard lock(context.mutex);
    context.buffers.erase(this);
  }

  bool waitRecv(int *rank, milliseconds timeout) override {
    return check(transfer->waitRecv(rank, timeout));
  }
  bool waitSend(int *rank, milliseconds timeout) override {
    return check(transfer->waitSend(rank, timeout));
  }
  void abortWaitRecv() override { transfer->abortWaitRecv(); }
  void abortWaitSend() override { transfer->abortWaitSend(); }
  void endWaits() {
    abortWaitRecv();
    abortWaitSend();
  }

  void send(int to, uint64_t slot, size_t offset, size_t bytes) override {
    transfer->send(to, slot, offset, bytes);
  }
  void recv(int from, uint64_t slot, size_t offset, size_t bytes) override {
    transfer->recv(from, slot, offset, bytes);
  }
  void recv(std::vector<int> from, uint64_t slot, size_t offset,
            size_t bytes) override {
    transfer->recv(std::move(from), slot, offset, bytes);
  }

private:
  /// Gloo's algorithms would go on.
  static bool check(bool isDone) {
    if (!isDone)
      throw gloo::IoException("this rank ends it");
    return true;
  }

  BufferContext &context;
  const std::unique_ptr<UnboundBuffer> transfer;
};

std::unique_ptr<UnboundBuffer>
BufferContext::createUnboundBuffer(void *data, size_t bytes) {
  return std::make_unique<Buffer>(*this, data, bytes);
}

void BufferContext::endWaits() {
  std::lock_guard lock(mutex);
  haveEnded = true;
  for (Buffer *buffer : buffers)
    buffer->endWaits();
}
