#include "runtime/devices/emulated/SimulatedNccl.h"

#include "runtime/base/Plugin.h"
#include "runtime/devices/emulated/DriverCalls.h"
#include "runtime/ranks/CollectiveKind.h"
#include "runtime/ranks/FreePort.h"
#include "runtime/ranks/Transport.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <optional>
#include <thread>

using namespace tcc;
using namespace tcc::emulated;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

static constexpr char kHost[] = "127.0.0.1";
static constexpr std::chrono::seconds kMeeting(30), kEnd(5);

/// What ranks compare before they do a call together, as it lies in memory.
struct Header {
  uint64_t number; ///< from 1 on
  int32_t kind;    ///< CollectiveKind, or kFinalize
  int32_t type;    ///< NcclType
  int64_t count;
  int64_t root;
  double clock; ///< of the stream, when it comes to the call
};
static constexpr int32_t kFinalize = -1;

static bool isSame(const Header &a, const Header &b) {
  return a.number == b.number && a.kind == b.kind && a.type == b.type &&
         a.count == b.count && a.root == b.root;
}

static std::string describe(const Header &call) {
  if (call.kind == kFinalize)
    return concat(call.number, " end");
  return concat(call.number, " ", nameOf(CollectiveKind(call.kind)), " of ",
                call.count, " of type ", call.type, " root ", call.root);
}

/// Never freed: calls with a communicator that has ended are found so.
struct tcc::runtime::cuda::NcclObject {
  NcclObject(int rank, int size, ContextHandle context)
      : rank(rank), size(size), context(context) {}

  const int rank, size;
  const ContextHandle context;          ///< of the device that it is made on
  std::unique_ptr<Transport> transport; ///< null for one rank
  std::thread meeting;
  std::atomic<NcclError> state = kNcclInProgress;
  std::string error; ///< written before `state` is
  std::atomic<bool> hasEnded = false;
  uint64_t number = 0; ///< of the last call that was done
  /// As often as streams and graphs have a call of it, and once more.
  std::shared_ptr<char> uses = std::make_shared<char>();
  std::ofstream log;
  /// The last call that a stream was given: calls are done in one order.
  std::shared_ptr<Event> last;
  Stream *lastStream = nullptr;

  void fail(NcclError code, std::string why) {
    error = std::move(why);
    state = code;
  }
};

namespace {

using Comm = NcclObject;

/// The time of a message, and how many bytes go in a microsecond.
struct Link {
  double microseconds = 20, bytes = 1024;

  /// The time of a collective in a ring, in microseconds.
  double timeOf(CollectiveKind kind, double sent, int ranks) const {
    double others = double(ranks - 1) / ranks;
    double turns = kind == CollectiveKind::AllReduce   ? 2 * others
                   : kind == CollectiveKind::Broadcast ? (ranks > 1)
                                                       : ranks - 1;
    return microseconds + turns * sent / bytes;
  }
};

/// As TCC_EMULATED_LINK says it; nothing if that is malformed.
std::optional<Link> readLink() {
  const char *given = std::getenv("TCC_EMULATED_LINK");
  if (!given)
    return Link();
  double microseconds = 0, bytes = 0;
  int end = 0;
  if (std::sscanf(given, "%lf:%lf%n", &microseconds, &bytes, &end) != 2 ||
      given[end] != 0 || !(microseconds >= 0 && bytes > 0))
    return std::nullopt;
  return Link{microseconds, bytes};
}

/// The number of the call at which TCC_EMULATED_NCCL_FAULT has it that `what`
/// happens in this process; 0 if it does not.
uint64_t findFault(std::string_view what) {
  const char *given = std::getenv("TCC_EMULATED_NCCL_FAULT");
  std::string_view fault = given ? given : "";
  if (fault.substr(0, fault.find(':')) != what)
    return 0;
  return fault == what ? 1
                       : std::strtoull(given + what.size() + 1, nullptr, 10);
}

DType dtypeOf(int type) {
  switch (type) {
  case kNcclF32:
    return DType::f32;
  case kNcclF64:
    return DType::f64;
  case kNcclI32:
    return DType::i32;
  case kNcclI64:
    return DType::i64;
  default:
    return DType::u8;
  }
}

//===----------------------------------------------------------------------===//
// Communicators
//===----------------------------------------------------------------------===//

/// A port, where rank 0 will be found.
NcclError getUniqueId(NcclId *id) {
  *id = {};
  Result<uint16_t> port = findFreePort(kHost);
  if (!port.ok())
    return kNcclSystemError;
  std::memcpy(id->bytes, &*port, sizeof(*port));
  return kNcclSuccess;
}

void meet(Comm &comm, uint16_t port) {
  Result<void *> found = findInPlugin("libtcc_gloo.so", kOpenTransport);
  Status status;
  if (found.ok())
    comm.transport.reset(reinterpret_cast<OpenTransport>(*found)(
        {.rank = comm.rank, .size = comm.size, .host = kHost, .port = port},
        kMeeting, status));
  else
    status = found.takeStatus();
  if (!status.ok())
    return comm.fail(kNcclSystemError, std::string(status.message()));
  comm.transport->setTimeout(std::chrono::milliseconds(0));
  comm.state = kNcclSuccess;
}

NcclError commInitRankConfig(NcclHandle *handle, int size, NcclId id, int rank,
                             NcclConfig *config) {
  bool isKnown = config->magic == NcclConfig().magic && config->blocking == 0;
  if (!isKnown || rank < 0 || rank >= size || !getCurrentContext())
    return kNcclInvalidArgument;
  static auto &comms = *new std::vector<Comm *>; // known to the end
  static std::mutex mutex;
  auto *comm = new Comm(rank, size, getCurrentContext());
  {
    std::lock_guard lock(mutex);
    comms.push_back(comm);
  }
  if (const char *folder = std::getenv("TCC_EMULATED_NCCL_LOG"))
    comm->log.open(concat(folder, "/rank-", rank, ".calls"));
  *handle = comm;
  if (!readLink()) {
    comm->fail(kNcclInvalidArgument, concat("TCC_EMULATED_LINK is '",
                                            std::getenv("TCC_EMULATED_LINK"),
                                            "', expected MICROSECONDS:BYTES"));
    return comm->state;
  }
  if (findFault("meeting"))
    return kNcclInProgress;
  if (size == 1) {
    comm->state = kNcclSuccess;
    return kNcclSuccess;
  }
  uint16_t port = 0;
  std::memcpy(&port, id.bytes, sizeof(port));
  comm->meeting = std::thread([comm, port] { meet(*comm, port); });
  return kNcclInProgress;
}

NcclError commGetAsyncError(NcclHandle comm, NcclError *error) {
  if (comm->hasEnded)
    return kNcclInvalidArgument;
  *error = comm->state;
  return kNcclSuccess;
}

void join(Comm &comm) {
  if (comm.meeting.joinable())
    comm.meeting.join();
}

/// Any thread: the driver may wait for the call that this ends.
NcclError commAbort(NcclHandle comm) {
  if (comm->hasEnded.exchange(true))
    return kNcclInvalidArgument;
  if (comm->state == kNcclInProgress && comm->meeting.joinable()) {
    comm->meeting.detach(); // Gloo waits for who does not come
    return kNcclSuccess;
  }
  join(*comm);
  if (comm->transport)
    comm->transport->abort();
  return kNcclSuccess;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// False where ranks do not make the same call, or one is gone.
bool compare(Comm &comm, Header &own) {
  std::vector<Header> all(comm.size, own);
  if (comm.transport)
    if (Status status =
            comm.transport->allGather(&own, all.data(), sizeof(own), DType::u8);
        !status.ok()) {
      comm.fail(kNcclRemoteError, std::string(status.message()));
      return false;
    }
  for (const Header &other : all) {
    own.clock = std::max(own.clock, other.clock);
    if (isSame(own, other))
      continue;
    comm.fail(kNcclInvalidUsage,
              concat("ranks differ: rank ", comm.rank, " makes call ",
                     describe(own), ", rank ", &other - all.data(), " call ",
                     describe(other)));
    return false;
  }
  return true;
}

struct Call {
  CollectiveKind kind;
  const void *from;
  void *to;
  size_t count;
  int type;
  int root = 0;

  size_t bytes() const { return count * traitsOf(dtypeOf(type)).bytes; }
};

/// Buffers overlap as NCCL says for calls in place, or not at all.
Status checkOverlap(const Comm &comm, const Call &call, size_t read,
                    size_t written) {
  auto from = reinterpret_cast<uint64_t>(call.from);
  auto to = reinterpret_cast<uint64_t>(call.to);
  uint64_t part = comm.rank * call.bytes();
  bool isInPlace = call.kind == CollectiveKind::ReduceScatter
                       ? to == from + part
                   : call.kind == CollectiveKind::AllGather ? from == to + part
                                                            : from == to;
  bool isApart = from + read <= to || to + written <= from;
  bool isRead =
      call.kind != CollectiveKind::Broadcast || comm.rank == call.root;
  if (isInPlace || isApart || !isRead)
    return Status();
  return makeError(Code::Device, nameOf(call.kind),
                   ": buffers overlap, and it is not in place");
}

Status checkBuffers(const Comm &comm, const Call &call) {
  size_t read = call.bytes(), written = call.bytes();
  if (call.kind == CollectiveKind::ReduceScatter)
    read *= comm.size;
  if (call.kind == CollectiveKind::AllGather)
    written *= comm.size;
  if (Status status = checkOverlap(comm, call, read, written); !status.ok())
    return status;
  auto check = [&](const void *address, size_t bytes) {
    return simulator().memory.checkDevice(reinterpret_cast<uint64_t>(address),
                                          bytes);
  };
  Status status = check(call.from, read);
  if (status.ok())
    status = check(call.to, written);
  return status.ok() ? std::move(status)
                     : makeError(Code::Device, nameOf(call.kind), ": ",
                                 status.message());
}

Status move(Comm &comm, const Call &call) {
  DType dtype = dtypeOf(call.type);
  if (!comm.transport) {
    std::memmove(call.to, call.from, call.bytes());
    return Status();
  }
  switch (call.kind) {
  case CollectiveKind::AllReduce:
    return comm.transport->allReduce(call.from, call.to, call.count, dtype);
  case CollectiveKind::ReduceScatter:
    return comm.transport->reduceScatter(call.from, call.to, call.count, dtype);
  case CollectiveKind::AllGather:
    return comm.transport->allGather(call.from, call.to, call.count, dtype);
  case CollectiveKind::Broadcast:
    return comm.transport->broadcast(call.from, call.to, call.count, dtype,
                                     call.root);
  case CollectiveKind::Barrier:
    break;
  }
  return Status(Code::Internal, "a call of no kind");
}

/// As on a GPU, a call that cannot be done stays until it is aborted.
void awaitAbort(const Comm &comm) {
  while (!comm.hasEnded)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// What the call writes after an error means nothing; a bad address is an
/// error of the context.
Status perform(Comm &comm, const Call &call, double &clock) {
  if (comm.hasEnded)
    return Status();
  if (Status status = checkBuffers(comm, call); !status.ok())
    return status;
  Header header = {++comm.number,       int32_t(call.kind), call.type,
                   int64_t(call.count), call.root,          clock};
  bool isStuck = findFault("stuck") == comm.number;
  if (findFault("error") == comm.number)
    comm.fail(kNcclSystemError, "unhandled system error");
  bool isDone = !isStuck && comm.state == kNcclSuccess && compare(comm, header);
  if (isDone)
    if (Status status = move(comm, call); !status.ok()) {
      comm.fail(kNcclRemoteError, std::string(status.message()));
      isDone = false;
    }
  if (!isDone) {
    awaitAbort(comm);
    return Status();
  }
  static const Link link = readLink().value_or(Link()); // was read before
  clock =
      header.clock + link.timeOf(call.kind, double(call.bytes()), comm.size);
  comm.log << describe(header) << std::endl;
  return Status();
}

/// After the last one, also of another stream: what a graph has that is
/// captured comes after what it does not have.
Status order(Comm &comm, Stream &stream) {
  bool isInOne = comm.last && !comm.last->captured == !stream.captured &&
                 comm.last->graph.lock() == stream.captured;
  if (isInOne && comm.lastStream != &stream)
    if (Status status = simulator().wait(stream, comm.last); !status.ok())
      return status;
  return Status();
}

NcclError enqueue(Comm &comm, Call call, StreamHandle handle) {
  if (comm.hasEnded || comm.state == kNcclInProgress)
    return kNcclInvalidUsage;
  if (getCurrentContext() != comm.context)
    return kNcclInvalidArgument;
  if (comm.state != kNcclSuccess)
    return comm.state;
  Error error = emulated::call([&]() -> Status {
    Stream &stream = streamOf(handle);
    if (Status status = checkBuffers(comm, call); !status.ok())
      return status;
    if (Status status = order(comm, stream); !status.ok())
      return status;
    Operation operation{Operation::Call};
    operation.name = nameOf(call.kind);
    operation.microseconds = 0;
    operation.call = [&comm, call, use = comm.uses](double &clock) {
      return perform(comm, call, clock);
    };
    if (Status status = simulator().enqueue(stream, std::move(operation));
        !status.ok())
      return status;
    comm.last = std::make_shared<Event>();
    comm.lastStream = &stream;
    return simulator().record(comm.last, stream);
  });
  return error == kSuccess ? kNcclSuccess : 1;
}

/// A call that ranks make at the end, so that nobody has made more. NCCL waits
/// for calls that are not done, and for ever for graphs that have some.
NcclError commFinalize(NcclHandle comm) {
  if (comm->hasEnded)
    return kNcclInvalidArgument;
  if (comm->uses.use_count() > 1)
    comm->fail(kNcclInvalidUsage,
               "it ends while a stream or a graph has calls");
  join(*comm);
  Header header = {++comm->number, kFinalize, 0, 0, 0, 0};
  if (comm->transport)
    comm->transport->setTimeout(kEnd);
  if (comm->state == kNcclSuccess && compare(*comm, header))
    comm->log << describe(header) << std::endl;
  return comm->state;
}

NcclError commDestroy(NcclHandle comm) {
  if (comm->hasEnded.exchange(true))
    return kNcclInvalidArgument;
  comm->transport.reset();
  return kNcclSuccess;
}

Nccl makeTable() {
  using Kind = CollectiveKind;
  Nccl table = {};
  table.getVersion = [](int *version) {
    *version = findFault("old") ? kLeastNccl - 1 : kLeastNccl;
    return kNcclSuccess;
  };
  table.getUniqueId = getUniqueId;
  table.commInitRankConfig = commInitRankConfig;
  table.commFinalize = commFinalize;
  table.commDestroy = commDestroy;
  table.commAbort = commAbort;
  table.commGetAsyncError = commGetAsyncError;
  table.getErrorString = [](NcclError error) {
    return error == kNcclInvalidUsage ? "invalid usage" : "an error";
  };
  table.getLastError = [](NcclHandle comm) { return comm->error.c_str(); };
  table.allReduce = [](const void *from, void *to, size_t count, int type, int,
                       NcclHandle comm, StreamHandle stream) {
    return enqueue(*comm, {Kind::AllReduce, from, to, count, type}, stream);
  };
  table.reduceScatter = [](const void *from, void *to, size_t count, int type,
                           int, NcclHandle comm, StreamHandle stream) {
    return enqueue(*comm, {Kind::ReduceScatter, from, to, count, type}, stream);
  };
  table.allGather = [](const void *from, void *to, size_t count, int type,
                       NcclHandle comm, StreamHandle stream) {
    return enqueue(*comm, {Kind::AllGather, from, to, count, type}, stream);
  };
  table.broadcast = [](const void *from, void *to, size_t count, int type,
                       int root, NcclHandle comm, StreamHandle stream) {
    return enqueue(*comm, {Kind::Broadcast, from, to, count, type, root},
                   stream);
  };
  return table;
}

} // namespace

const Nccl *tcc_emulated_nccl() {
  static const Nccl table = makeTable();
  return &table;
}
