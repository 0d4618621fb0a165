// The plugin's entry: groups of ranks by NCCL. Communicators do not block: each
// call says that it is in progress, and is asked until it is not.

#include "runtime/devices/cuda/Group.h"

#include "runtime/devices/nccl/Nccl.h"

#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;
using Clock = std::chrono::steady_clock;

static_assert(sizeof(GroupId) == sizeof(NcclId));

/// How long a call may be in progress once the group is there: connections are
/// made when a collective is met first.
static constexpr std::chrono::seconds kCallTime(30);
/// How long the end of a group may take.
static constexpr std::chrono::seconds kEndTime(5);

namespace {

class NcclGroup final : public Group {
public:
  NcclGroup(const Nccl &table, int rank) : table(table), rank(rank) {}
  ~NcclGroup() override;

  Status join(const GroupId &id, int size, const std::function<bool()> &isOver);
  Status enqueue(const Exchange &exchange, StreamHandle stream) override;
  Status check() override;
  void abort() override;

private:
  NcclError settle(NcclError error, const std::function<bool()> &isOver) const;
  Status explain(NcclError error, std::string_view doing) const;
  NcclError call(const Exchange &exchange, StreamHandle stream) const;

  const Nccl &table;
  const int rank;
  std::mutex mutex; ///< one call at a time, and none after an abort
  NcclHandle comm = nullptr;
  std::atomic<bool> isAborted = false; ///< calls in progress end, too
};

class NcclLibrary final : public GroupLibrary {
public:
  NcclLibrary(const Nccl &table, int version)
      : table(table), label(concat("NCCL ", nameNcclVersion(version))) {}

  std::string_view name() const override { return label; }
  Result<GroupId> createId() override;
  Result<std::unique_ptr<Group>>
  join(const GroupId &id, int rank, int size,
       const std::function<bool()> &isOver) override;

private:
  const Nccl &table;
  std::string label;
};

/// How elements that are added up are called.
struct SumRow {
  DType dtype;
  NcclType type;
};
constexpr SumRow kSums[] = {{DType::f32, kNcclF32},
                            {DType::f64, kNcclF64},
                            {DType::i32, kNcclI32},
                            {DType::i64, kNcclI64}};

} // namespace

static std::function<bool()> after(std::chrono::seconds time) {
  return [end = Clock::now() + time] { return Clock::now() >= end; };
}

static const SumRow *findSum(DType dtype) {
  for (const SumRow &row : kSums)
    if (row.dtype == dtype)
      return &row;
  return nullptr;
}

/// The error of a call once it is no longer in progress.
NcclError NcclGroup::settle(NcclError error,
                            const std::function<bool()> &isOver) const {
  constexpr std::chrono::microseconds kPause(50);
  while (error == kNcclInProgress && !isAborted && !isOver()) {
    if (NcclError asked = table.commGetAsyncError(comm, &error);
        asked != kNcclSuccess)
      return asked;
    if (error == kNcclInProgress)
      std::this_thread::sleep_for(kPause);
  }
  return error;
}

Status NcclGroup::explain(NcclError error, std::string_view doing) const {
  if (error == kNcclSuccess)
    return Status();
  if (error == kNcclInProgress)
    return makeError(Code::Peer, doing, ": NCCL does not come to an end");
  std::string_view last = comm ? table.getLastError(comm) : "";
  return makeError(Code::Peer, doing, ": NCCL: ",
                   last.empty() ? table.getErrorString(error) : last);
}

Status NcclGroup::join(const GroupId &id, int size,
                       const std::function<bool()> &isOver) {
  NcclId given;
  std::memcpy(given.bytes, id.data(), id.size());
  NcclConfig config;
  std::lock_guard lock(mutex);
  NcclError error = table.commInitRankConfig(&comm, size, given, rank, &config);
  return explain(settle(error, isOver), "joining the ranks' devices");
}

NcclError NcclGroup::call(const Exchange &exchange, StreamHandle stream) const {
  const void *from = exchange.from;
  void *to = exchange.to;
  size_t count = exchange.count, bytes = exchange.bytes();
  const SumRow *sum = findSum(exchange.dtype);
  switch (exchange.kind) {
  case CollectiveKind::AllReduce:
    return table.allReduce(from, to, count, sum->type, kNcclSum, comm, stream);
  case CollectiveKind::ReduceScatter:
    return table.reduceScatter(from, to, count, sum->type, kNcclSum, comm,
                               stream);
  case CollectiveKind::AllGather:
    return table.allGather(from, to, bytes, kNcclU8, comm, stream);
  case CollectiveKind::Broadcast:
    return table.broadcast(from, to, bytes, kNcclU8, exchange.root, comm,
                           stream);
  case CollectiveKind::Barrier: // of no program
    break;
  }
  return kNcclInvalidArgument;
}

Status NcclGroup::enqueue(const Exchange &exchange, StreamHandle stream) {
  bool adds = exchange.kind == CollectiveKind::AllReduce ||
              exchange.kind == CollectiveKind::ReduceScatter;
  if (adds && !findSum(exchange.dtype))
    return makeError(Code::Unsupported, "ranks add up no ",
                     traitsOf(exchange.dtype).name);
  std::lock_guard lock(mutex);
  if (!comm || isAborted)
    return Status(Code::Peer, "this rank ends it");
  return explain(settle(call(exchange, stream), after(kCallTime)),
                 nameOf(exchange.kind));
}

Status NcclGroup::check() {
  std::lock_guard lock(mutex);
  if (!comm || isAborted)
    return Status(Code::Peer, "this rank ends it");
  NcclError error = kNcclSuccess;
  NcclError asked = table.commGetAsyncError(comm, &error);
  if (error == kNcclInProgress)
    return Status();
  return explain(asked != kNcclSuccess ? asked : error, "between devices");
}

void NcclGroup::abort() {
  isAborted = true;
  std::lock_guard lock(mutex);
  if (NcclHandle ended = std::exchange(comm, nullptr))
    (void)table.commAbort(ended);
}

/// All ranks come here, or some are gone.
NcclGroup::~NcclGroup() {
  if (!comm)
    return;
  NcclError error = settle(table.commFinalize(comm), after(kEndTime));
  if (error == kNcclSuccess)
    (void)table.commDestroy(comm);
  else
    abort();
}

Result<GroupId> NcclLibrary::createId() {
  NcclId made;
  if (NcclError error = table.getUniqueId(&made); error != kNcclSuccess)
    return makeError(Code::Device, "NCCL has no way between ranks: ",
                     table.getErrorString(error));
  GroupId id;
  std::memcpy(id.data(), made.bytes, id.size());
  return id;
}

Result<std::unique_ptr<Group>>
NcclLibrary::join(const GroupId &id, int rank, int size,
                  const std::function<bool()> &isOver) {
  auto group = std::make_unique<NcclGroup>(table, rank);
  if (Status status = group->join(id, size, isOver); !status.ok()) {
    group->abort();
    return status;
  }
  return std::unique_ptr<Group>(std::move(group));
}

/// As the runtime finds it: see kOpenGroupLibrary.
extern "C" __attribute__((visibility("default"))) GroupLibrary *
tcc_open_group_library(const GroupChoice &choice, Status &status) {
  Result<const Nccl *> table =
      choice.simulated ? choice.simulated : findNccl(choice.places);
  status = table.ok() ? checkNcclVersion(**table) : table.takeStatus();
  if (!status.ok())
    return nullptr;
  int version = 0;
  (void)(*table)->getVersion(&version);
  return new NcclLibrary(**table, version);
}
