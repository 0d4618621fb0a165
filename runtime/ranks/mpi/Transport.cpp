#include "runtime/ranks/Transport.h"

#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

using namespace tcc;
using namespace tcc::runtime;
using Clock = std::chrono::steady_clock;

/// Bytes of one call, which is a piece of what a caller wants.
static constexpr size_t kStageBytes = size_t(4) << 20;

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

/// MPI between all ranks that the launcher started. It is begun by the first
/// one of a process, unless its embedder did, and ended with the process if all
/// of them were closed: of a process that ends without it the launcher ends the
/// others.
class MpiTransport final : public Transport {
public:
  explicit MpiTransport(const Launch &launch)
      : rank(launch.rank), size(launch.size) {}
  ~MpiTransport() override;
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
  /// Other ranks hear of it when the process ends.
  void abort() override { isAborted = true; }

private:
  template <typename Start> Status perform(Start start);
  template <typename Call>
  Status inPieces(size_t count, size_t bytes, size_t parts, Call call);
  Status reserveStage(size_t bytes);

  /// Transports that were not closed.
  static inline std::atomic<int> unclosed = 0;

  const int rank, size;
  MPI_Comm world = MPI_COMM_NULL; ///< a copy of MPI's own
  std::chrono::milliseconds timeout = {};
  std::atomic<bool> isAborted = false;
  /// Where MPI reads and writes. A call that fails stays with MPI, which can
  /// neither end it nor forget it: then this memory stays, too, while buffers
  /// of callers go.
  std::vector<std::byte> stage;
  bool keepsStage = false; ///< MPI has it
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

/// MPI may write there as long as the process lives.
MpiTransport::~MpiTransport() {
  if (keepsStage)
    (void)new std::vector<std::byte>(std::move(stage));
}

Status MpiTransport::reserveStage(size_t bytes) {
  if (keepsStage)
    return Status(Code::Peer, "a call before failed");
  try {
    stage.resize(std::max(stage.size(), bytes));
    return Status();
  } catch (const std::bad_alloc &) {
    return Status(Code::OutOfMemory, "out of memory between ranks");
  }
}

static const std::byte *at(const void *place, size_t bytes) {
  return static_cast<const std::byte *>(place) + bytes;
}
static std::byte *at(void *place, size_t bytes) {
  return static_cast<std::byte *>(place) + bytes;
}

/// Starts a call and waits for it. Who waits sleeps: MPI's own waits keep a
/// core busy, which kernels need.
template <typename Start> Status MpiTransport::perform(Start start) {
  MPI_Request request = MPI_REQUEST_NULL;
  int error = start(&request), isDone = 0;
  keepsStage = true;
  Clock::time_point begin = Clock::now();
  while (error == MPI_SUCCESS) {
    if (isAborted)
      return Status(Code::Peer, "this rank ends it");
    error = MPI_Test(&request, &isDone, MPI_STATUS_IGNORE);
    if (isDone || error != MPI_SUCCESS)
      break;
    auto waited = Clock::now() - begin;
    if (timeout.count() > 0 && waited > timeout)
      return Status(Code::Peer, "it took too long");
    if (waited > kBusy)
      std::this_thread::sleep_for(kPause);
  }
  keepsStage = error != MPI_SUCCESS;
  return error == MPI_SUCCESS ? Status() : Status(Code::Peer, describe(error));
}

/// Calls `perform(first, piece)` for pieces of the elements that fit in the
/// stage `parts` times.
template <typename Call>
Status MpiTransport::inPieces(size_t count, size_t bytes, size_t parts,
                              Call call) {
  size_t most = std::max<size_t>(kStageBytes / (bytes * parts), 1);
  for (size_t first = 0; first < count; first += most) {
    size_t piece = std::min(count - first, most);
    if (Status status = reserveStage(piece * bytes * parts); !status.ok())
      return status;
    if (Status status = call(first, piece); !status.ok())
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
  return inPieces(count, bytes, 1, [&](size_t first, size_t piece) {
    std::memcpy(stage.data(), at(from, first * bytes), piece * bytes);
    Status status = perform([&](MPI_Request *request) {
      return MPI_Iallreduce(MPI_IN_PLACE, stage.data(), int(piece), *type,
                            MPI_SUM, world, request);
    });
    if (status.ok())
      std::memcpy(at(to, first * bytes), stage.data(), piece * bytes);
    return status;
  });
}

Status MpiTransport::reduceScatter(const void *from, void *to, size_t count,
                                   DType dtype) {
  std::optional<MPI_Datatype> type = findType(dtype);
  size_t bytes = traitsOf(dtype).bytes;
  if (!type)
    return makeError(Code::Unsupported, "ranks add up no ",
                     traitsOf(dtype).name);
  return inPieces(count, bytes, size, [&](size_t first, size_t piece) {
    for (int part = 0; part < size; ++part)
      std::memcpy(stage.data() + part * piece * bytes,
                  at(from, (part * count + first) * bytes), piece * bytes);
    Status status = perform([&](MPI_Request *request) {
      return MPI_Ireduce_scatter_block(MPI_IN_PLACE, stage.data(), int(piece),
                                       *type, MPI_SUM, world, request);
    });
    if (status.ok())
      std::memcpy(at(to, first * bytes), stage.data(), piece * bytes);
    return status;
  });
}

Status MpiTransport::allGather(const void *from, void *to, size_t count,
                               DType dtype) {
  size_t all = count * traitsOf(dtype).bytes;
  return inPieces(all, 1, size, [&](size_t first, size_t piece) {
    std::memcpy(stage.data() + rank * piece, at(from, first), piece);
    Status status = perform([&](MPI_Request *request) {
      return MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, stage.data(),
                            int(piece), MPI_BYTE, world, request);
    });
    for (int part = 0; status.ok() && part < size; ++part)
      std::memcpy(at(to, part * all + first), stage.data() + part * piece,
                  piece);
    return status;
  });
}

Status MpiTransport::broadcast(const void *from, void *to, size_t count,
                               DType dtype, int root) {
  size_t all = count * traitsOf(dtype).bytes;
  return inPieces(all, 1, 1, [&](size_t first, size_t piece) {
    if (root == rank)
      std::memcpy(stage.data(), at(from, first), piece);
    Status status = perform([&](MPI_Request *request) {
      return MPI_Ibcast(stage.data(), int(piece), MPI_BYTE, root, world,
                        request);
    });
    if (status.ok() && (root != rank || from != to))
      std::memcpy(at(to, first), stage.data(), piece);
    return status;
  });
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
