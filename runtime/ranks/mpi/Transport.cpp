#include "runtime/ranks/Transport.h"

#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>

using namespace tcc;
using namespace tcc::runtime;
using Clock = std::chrono::steady_clock;

/// Elements of one call, whose numbers are int.
static constexpr size_t kMostElements = size_t(1) << 30;

/// How long a rank that waits asks again and again, and then between two times.
static constexpr std::chrono::microseconds kBusy(50), kPause(50);

static std::optional<MPI_Datatype> findType(DType dtype) {
  switch (dtype) {
  case DType::f32:
    return MPI_FLOAT;
  case DType::f64:
    return MPI_DOUBLE;
  case DType::i32:
    return MPI_INT32_T;
  case DType::i64:
    return MPI_INT64_T;
  default:
    return std::nullopt;
  }
}

namespace {

/// Of all ranks that the launcher started. MPI is begun by the first one of a
/// process, unless its embedder did, and ended with the process if all of them
/// were closed: of a process that ends without it the launcher ends the others.
class MpiTransport final : public Transport {
public:
  explicit MpiTransport(const Launch &launch)
      : rank(launch.rank), size(launch.size) {}
  Status open(std::chrono::milliseconds rendezvous);

  std::string_view name() const override { return "mpi"; }
  Status allReduce(const void *from, void *to, size_t count,
                   DType dtype) override;
  Status reduceScatter(const void *from, void *to, size_t count,
                       DType dtype) override;
  Status allGather(const void *from, void *to, size_t count,
                   DType dtype) override;
  Status broadcast(const void *from, void *to, size_t count, DType dtype,
                   int root) override;
  Status barrier() override;
  Status close() override;
  void setTimeout(std::chrono::milliseconds longest) override {
    timeout = longest;
  }
  /// Others hear of it when the process ends.
  void abort() override { isAborted = true; }

private:
  template <typename Start> Status perform(Start start);
  template <typename Start> Status performInPieces(size_t count, Start start);

  /// Transports that were not closed.
  static inline std::atomic<int> unclosed = 0;

  const int rank, size;
  MPI_Comm world = MPI_COMM_NULL; ///< a copy of MPI's own
  std::chrono::milliseconds timeout = {};
  std::atomic<bool> isAborted = false;
};

} // namespace

static std::string describe(int error) {
  char text[MPI_MAX_ERROR_STRING];
  int size = 0;
  if (MPI_Error_string(error, text, &size) != MPI_SUCCESS)
    return concat("error ", error);
  return std::string(text, size);
}

/// MPI cannot be begun twice.
static Status beginMpi(const std::atomic<int> &unclosed) {
  static const std::atomic<int> *kept = &unclosed;
  int isInitialized = 0, isFinalized = 0, provided = 0;
  MPI_Initialized(&isInitialized);
  MPI_Finalized(&isFinalized);
  if (isFinalized)
    return Status(Code::Unsupported, "MPI was ended in this process already");
  int error = isInitialized ? MPI_Query_thread(&provided)
                            : MPI_Init_thread(nullptr, nullptr,
                                              MPI_THREAD_SERIALIZED, &provided);
  if (error != MPI_SUCCESS)
    return makeError(Code::Peer, "MPI does not begin: ", describe(error));
  if (!isInitialized)
    std::atexit([] {
      if (*kept == 0)
        MPI_Finalize();
    });
  if (provided < MPI_THREAD_SERIALIZED)
    return Status(Code::Unsupported,
                  "this MPI takes calls of one thread alone, expected "
                  "MPI_THREAD_SERIALIZED");
  return Status();
}

Status MpiTransport::open(std::chrono::milliseconds rendezvous) {
  if (Status status = beginMpi(unclosed); !status.ok())
    return status;
  int foundRank = 0, foundSize = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &foundRank);
  MPI_Comm_size(MPI_COMM_WORLD, &foundSize);
  if (foundRank != rank || foundSize != size)
    return makeError(Code::Usage, "the environment says rank ", rank, " of ",
                     size, ", MPI says rank ", foundRank, " of ", foundSize);
  ++unclosed;
  if (int error = MPI_Comm_dup(MPI_COMM_WORLD, &world); error != MPI_SUCCESS)
    return makeError(Code::Peer, "MPI has no communicator: ", describe(error));
  MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
  timeout = rendezvous;
  return barrier();
}

Status MpiTransport::close() {
  if (Status status = barrier(); !status.ok())
    return status;
  MPI_Comm_free(&world);
  --unclosed;
  return Status();
}

/// Starts a call and waits for it. Who waits sleeps: MPI's own waits keep a
/// core busy, which kernels need.
template <typename Start> Status MpiTransport::perform(Start start) {
  MPI_Request request = MPI_REQUEST_NULL;
  int error = start(&request), isDone = 0;
  Clock::time_point begin = Clock::now();
  while (error == MPI_SUCCESS) {
    if (isAborted)
      return Status(Code::Peer, "this rank ends it");
    error = MPI_Test(&request, &isDone, MPI_STATUS_IGNORE);
    if (isDone || error != MPI_SUCCESS)
      break;
    auto waited = Clock::now() - begin;
    if (waited > timeout)
      return Status(Code::Peer, "it took too long");
    if (waited > kBusy)
      std::this_thread::sleep_for(kPause);
  }
  return error == MPI_SUCCESS ? Status() : Status(Code::Peer, describe(error));
}

template <typename Start>
Status MpiTransport::performInPieces(size_t count, Start start) {
  for (size_t done = 0; done < count; done += kMostElements) {
    int piece = int(std::min(count - done, kMostElements));
    auto startPiece = [&](MPI_Request *request) {
      return start(done, piece, request);
    };
    if (Status status = perform(startPiece); !status.ok())
      return status;
  }
  return Status();
}

Status MpiTransport::allReduce(const void *from, void *to, size_t count,
                               DType dtype) {
  std::optional<MPI_Datatype> type = findType(dtype);
  size_t bytes = traitsOf(dtype).bytes;
  if (!type)
    return makeError(Code::Unsupported, "ranks add up no ",
                     traitsOf(dtype).name);
  auto start = [&](size_t first, int piece, MPI_Request *request) {
    auto *source = static_cast<const std::byte *>(from) + first * bytes;
    auto *target = static_cast<std::byte *>(to) + first * bytes;
    return MPI_Iallreduce(from == to ? MPI_IN_PLACE : source, target, piece,
                          *type, MPI_SUM, world, request);
  };
  return performInPieces(count, start);
}

/// A piece of each rank's part at a time would lie apart.
Status MpiTransport::reduceScatter(const void *from, void *to, size_t count,
                                   DType dtype) {
  std::optional<MPI_Datatype> type = findType(dtype);
  if (!type)
    return makeError(Code::Unsupported, "ranks add up no ",
                     traitsOf(dtype).name);
  if (count > kMostElements)
    return makeError(Code::Unsupported, "a reduce-scatter of ", count,
                     " elements a rank, expected ", kMostElements, " at most");
  return perform([&](MPI_Request *request) {
    return MPI_Ireduce_scatter_block(from, to, int(count), *type, MPI_SUM,
                                     world, request);
  });
}

Status MpiTransport::allGather(const void *from, void *to, size_t count,
                               DType dtype) {
  size_t bytes = count * traitsOf(dtype).bytes;
  if (bytes > kMostElements)
    return makeError(Code::Unsupported, "an all-gather of ", bytes,
                     " bytes a rank, expected ", kMostElements, " at most");
  return perform([&](MPI_Request *request) {
    return MPI_Iallgather(from, int(bytes), MPI_BYTE, to, int(bytes), MPI_BYTE,
                          world, request);
  });
}

Status MpiTransport::broadcast(const void *from, void *to, size_t count,
                               DType dtype, int root) {
  size_t bytes = count * traitsOf(dtype).bytes;
  if (root == rank && from != to && bytes > 0)
    std::memcpy(to, from, bytes);
  auto start = [&](size_t first, int piece, MPI_Request *request) {
    return MPI_Ibcast(static_cast<std::byte *>(to) + first, piece, MPI_BYTE,
                      root, world, request);
  };
  return performInPieces(bytes, start);
}

Status MpiTransport::barrier() {
  return perform(
      [&](MPI_Request *request) { return MPI_Ibarrier(world, request); });
}

/// As the runtime finds it: see kOpenTransport.
extern "C" __attribute__((visibility("default"))) Transport *
tcc_open_transport(const Launch &launch, std::chrono::milliseconds rendezvous,
                   Status &status) {
  auto transport = std::make_unique<MpiTransport>(launch);
  status = transport->open(rendezvous);
  return status.ok() ? transport.release() : nullptr;
}
