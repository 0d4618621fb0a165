#include "runtime/ranks/Transport.h"
#include "runtime/ranks/gloo/Buffers.h"
#include "runtime/ranks/gloo/KeyClient.h"
#include "runtime/ranks/gloo/KeyServer.h"

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/transport/tcp/device.h>

#include <csignal>
#include <cstring>

/// As far as it is needed here: its own header includes one that Debian leaves
/// out. What else there is to end a call of Gloo's from another thread,
/// Context::closeConnections, lets those wait that are under way.
class gloo::transport::tcp::Pair {
public:
  /// Ends what it does, and closes it; any thread.
  std::exception_ptr signalExceptionExternal(const std::string &why);
};

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::ranks;

/// Gloo says which of its lines threw.
static std::string_view withoutPlace(std::string_view message) {
  size_t end = message.starts_with('[') ? message.find("] ") : message.npos;
  return end == message.npos ? message : message.substr(end + 2);
}

namespace {

/// Gloo writes to sockets whose other end may be gone. That is an error of the
/// write, and here no signal to this thread and those that it begins.
class BlockedPipeSignal {
public:
  BlockedPipeSignal() {
    sigset_t pending;
    sigpending(&pending);
    wasPending = sigismember(&pending, SIGPIPE);
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
  }
  ~BlockedPipeSignal() {
    timespec now = {};
    if (!wasPending)
      sigtimedwait(&pipe, nullptr, &now);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  BlockedPipeSignal(const BlockedPipeSignal &) = delete;
  BlockedPipeSignal &operator=(const BlockedPipeSignal &) = delete;

private:
  sigset_t pipe, before;
  bool wasPending;
};

/// Where Gloo's ranks leave their addresses, each by its number. No rank has
/// one of another's before all have said theirs: connecting to a rank that left
/// because it missed a third one's takes as long as the timeout.
class GlooStore final : public gloo::rendezvous::Store {
public:
  GlooStore(KeyClient &client, int rank, int size)
      : client(client), rank(rank), size(size) {}

  void set(const std::string &key, const std::vector<char> &data) override {
    check(client.set(key, data));
    ++sets; // Gloo's number of them is the same at all ranks
    auto keyOf = [&](int rank) { return concat("said ", sets, " ", rank); };
    check(client.set(keyOf(rank), {}));
    for (int other = 0; other < size; ++other)
      (void)get(keyOf(other), concat(other));
  }
  std::vector<char> get(const std::string &key) override {
    return get(key, key);
  }
  void wait(const std::vector<std::string> &keys) override {
    for (const std::string &key : keys)
      (void)get(key);
  }
  /// The client's deadline comes first.
  void wait(const std::vector<std::string> &keys,
            const std::chrono::milliseconds &) override {
    wait(keys);
  }

private:
  std::vector<char> get(const std::string &key, std::string_view other) {
    Result<std::vector<char>> value = client.get(key);
    if (!value.ok() && client.hasReason())
      check(value.takeStatus());
    if (!value.ok())
      check(makeError(Code::Peer, "no address of rank ", other, ": ",
                      value.takeStatus().message()));
    return std::move(*value);
  }
  static void check(const Status &status) {
    if (!status.ok())
      throw gloo::IoException(std::string(status.message()));
  }

  KeyClient &client;
  const int rank, size;
  int sets = 0;
};

class GlooTransport final : public Transport {
public:
  explicit GlooTransport(const Launch &launch)
      : rank(launch.rank), size(launch.size) {}

  Status open(const Launch &launch, std::chrono::milliseconds timeout);

  std::string_view name() const override { return "gloo"; }
  Status allReduce(const void *from, void *to, size_t count,
                   DType dtype) override;
  Status reduceScatter(const void *from, void *to, size_t count,
                       DType dtype) override;
  Status allGather(const void *from, void *to, size_t count,
                   DType dtype) override;
  Status broadcast(const void *from, void *to, size_t count, DType dtype,
                   int root) override;
  Status barrier() override;
  void setTimeout(std::chrono::milliseconds longest) override {
    // Gloo has no "for ever" for these calls.
    constexpr std::chrono::hours kEver(24 * 3650);
    context->setTimeout(longest.count() > 0 ? longest : kEver);
  }
  void abort() override;

private:
  Status join(const Launch &launch, std::chrono::milliseconds timeout,
              KeyClient::Clock::time_point deadline);
  Status meet(KeyClient &client);
  Status connect(KeyClient &client, std::chrono::milliseconds timeout);
  template <typename Call> Status attempt(Call call);

  const int rank, size;
  std::shared_ptr<RankContext> context;
  uint32_t tag = 0;             ///< another for each call
  std::vector<std::byte> whole; ///< all that a reduce-scatter adds up
};

} // namespace

//===----------------------------------------------------------------------===//
// Ranks meet
//===----------------------------------------------------------------------===//

/// All ranks say who they are, and see that they mean the same.
Status GlooTransport::meet(KeyClient &client) {
  auto keyOf = [](int rank) { return concat("rank ", rank); };
  std::string ownSize = std::to_string(size);
  Status said = client.set(keyOf(rank), ownSize);
  if (said.code() == Code::Usage)
    return makeError(Code::Usage, "another process is rank ", rank, ", too");
  if (!said.ok())
    return said;
  for (int other = 0; other < size; ++other) {
    Result<std::vector<char>> found = client.get(keyOf(other));
    if (!found.ok() && client.hasReason())
      return found.takeStatus();
    if (!found.ok())
      return makeError(Code::Peer, "rank ", other, " of ", size,
                       " did not come: ", found.takeStatus().message());
    std::string_view otherSize(found->data(), found->size());
    if (otherSize != ownSize)
      return makeError(Code::Usage, "rank ", other, " is one of ", otherSize,
                       ", rank ", rank, " is one of ", ownSize);
  }
  return Status();
}

Status GlooTransport::connect(KeyClient &client,
                              std::chrono::milliseconds timeout) {
  context = std::make_shared<RankContext>(rank, size);
  context->setTimeout(timeout);
  Status status = attempt([&] {
    GlooStore store(client, rank, size);
    // The way to rank 0 is one that others come by.
    auto device = gloo::transport::tcp::CreateDevice(
        gloo::transport::tcp::attr(client.ownAddress().c_str()));
    context->connectFullMesh(store, device);
    context->useBuffers();
  });
  if (status.ok())
    status = barrier();
  if (status.ok() || client.hasReason())
    return status;
  return makeError(status.code(),
                   "ranks do not connect to each other: ", status.message());
}

Status GlooTransport::join(const Launch &launch,
                           std::chrono::milliseconds timeout,
                           KeyClient::Clock::time_point deadline) {
  auto client = KeyClient::connect(launch.host, launch.port, deadline);
  if (!client.ok())
    return client.takeStatus();
  // The server is needed until all are connected.
  Status status = meet(**client);
  if (status.ok())
    status = connect(**client, timeout);
  // What contradicts the others find for themselves.
  if (status.code() == Code::Peer && !(*client)->hasReason())
    (*client)->giveUp(status.message());
  return status;
}

Status GlooTransport::open(const Launch &launch,
                           std::chrono::milliseconds timeout) {
  auto deadline = KeyClient::Clock::now() + timeout;
  std::unique_ptr<KeyServer> server;
  if (rank == 0) {
    auto listening = KeyServer::listen(launch.host, launch.port, deadline);
    if (!listening.ok())
      return listening.takeStatus();
    server = std::move(*listening);
  }
  Status status = join(launch, timeout, deadline);
  // What is wrong others find in the same keys.
  if (server && !status.ok())
    server->waitForClients(std::chrono::seconds(1));
  return status;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

void GlooTransport::abort() {
  for (int other = 0; other < size; ++other) {
    // The object as a whole: what Gloo's TCP device makes.
    void *pair = dynamic_cast<void *>(context->getPair(other).get());
    if (pair)
      (void)attempt([&] {
        (void)static_cast<gloo::transport::tcp::Pair *>(pair)
            ->signalExceptionExternal("this rank ends it");
      });
  }
  // Connections that had failed before have not told all who wait.
  context->endWaits();
}

/// Gloo throws.
template <typename Call> Status GlooTransport::attempt(Call call) {
  BlockedPipeSignal blocked;
  try {
    call();
    return Status();
  } catch (const std::bad_alloc &) {
    return Status(Code::OutOfMemory, "out of memory between ranks");
  } catch (const std::exception &error) {
    return Status(Code::Peer, std::string(withoutPlace(error.what())));
  } catch (...) {
    return Status(Code::Peer, "Gloo failed");
  }
}

namespace {

/// Tells Gloo what to add up.
using SetSum = void (*)(gloo::AllreduceOptions &options, void *from, void *to,
                        size_t count);

template <typename T>
void setSum(gloo::AllreduceOptions &options, void *from, void *to,
            size_t count) {
  if (from != to)
    options.setInput(static_cast<T *>(from), count);
  options.setOutput(static_cast<T *>(to), count);
  options.setReduceFunction(
      static_cast<void (*)(void *, const void *, const void *, size_t)>(
          gloo::sum<T>));
}

struct SumRow {
  DType dtype;
  SetSum set;
};
constexpr SumRow kSums[] = {{DType::f32, setSum<float>},
                            {DType::f64, setSum<double>},
                            {DType::i32, setSum<int32_t>},
                            {DType::i64, setSum<int64_t>}};

} // namespace

static SetSum findSum(DType dtype) {
  for (const SumRow &row : kSums)
    if (row.dtype == dtype)
      return row.set;
  return nullptr;
}

Status GlooTransport::allReduce(const void *from, void *to, size_t count,
                                DType dtype) {
  SetSum set = findSum(dtype);
  if (!set)
    return makeError(Code::Unsupported, "ranks add up no ",
                     traitsOf(dtype).name);
  if (count == 0)
    return Status();
  return attempt([&] {
    gloo::AllreduceOptions options(context);
    set(options, const_cast<void *>(from), to, count);
    options.setTag(tag++);
    gloo::allreduce(options);
  });
}

static const void *at(const void *whole, size_t bytes) {
  return static_cast<const std::byte *>(whole) + bytes;
}

/// Gloo has no reduce-scatter of any count: all parts are added up.
Status GlooTransport::reduceScatter(const void *from, void *to, size_t count,
                                    DType dtype) {
  size_t bytes = count * traitsOf(dtype).bytes;
  if (to == at(from, bytes * rank))
    return allReduce(from, const_cast<void *>(from), count * size, dtype);
  if (Status status = attempt([&] { whole.resize(bytes * size); });
      !status.ok())
    return status;
  if (Status status = allReduce(from, whole.data(), count * size, dtype);
      !status.ok())
    return status;
  std::copy_n(whole.data() + bytes * rank, bytes, static_cast<std::byte *>(to));
  return Status();
}

Status GlooTransport::allGather(const void *from, void *to, size_t count,
                                DType dtype) {
  size_t bytes = count * traitsOf(dtype).bytes;
  if (bytes == 0)
    return Status();
  return attempt([&] {
    gloo::AllgatherOptions options(context);
    if (from != at(to, bytes * rank))
      options.setInput(static_cast<char *>(const_cast<void *>(from)), bytes);
    options.setOutput(static_cast<char *>(to), bytes * size);
    options.setTag(tag++);
    gloo::allgather(options);
  });
}

Status GlooTransport::broadcast(const void *from, void *to, size_t count,
                                DType dtype, int root) {
  size_t bytes = count * traitsOf(dtype).bytes;
  if (bytes == 0)
    return Status();
  return attempt([&] {
    gloo::BroadcastOptions options(context);
    if (root == rank && from != to)
      options.setInput(static_cast<char *>(const_cast<void *>(from)), bytes);
    options.setOutput(static_cast<char *>(to), bytes);
    options.setRoot(root);
    options.setTag(tag++);
    gloo::broadcast(options);
  });
}

Status GlooTransport::barrier() {
  return attempt([&] {
    gloo::BarrierOptions options(context);
    options.setTag(tag++);
    gloo::barrier(options);
  });
}

/// As the runtime finds it: see kOpenTransport.
extern "C" __attribute__((visibility("default"))) Transport *
tcc_open_transport(const Launch &launch, std::chrono::milliseconds rendezvous,
                   Status &status) {
  try {
    auto transport = std::make_unique<GlooTransport>(launch);
    status = transport->open(launch, rendezvous);
    return status.ok() ? transport.release() : nullptr;
  } catch (const std::exception &error) { // no more threads, files or memory
    status = makeError(Code::OutOfMemory, "ranks cannot meet: ", error.what());
    return nullptr;
  }
}
