#include "runtime/ranks/Communicator.h"

#include "runtime/ranks/Build.h"
#include "runtime/ranks/Watch.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::runtime;
using std::chrono::milliseconds;

Communicator::Communicator(std::unique_ptr<Transport> given, int rank, int size)
    : ownRank(rank), rankCount(size), transport(std::move(given)) {}

Communicator::~Communicator() { leave(); }

//===----------------------------------------------------------------------===//
// Heartbeats
//===----------------------------------------------------------------------===//

/// All ranks learn what is wrong at one; of several at the first of them.
static Status share(Transport &transport, int size, const Status &own,
                    std::string &problem, Code &code) {
  struct Word {
    Code code = Code::Ok;
    char text[252] = {};
  };
  Word word;
  std::vector<Word> words(size);
  word.code = own.code();
  own.message().copy(word.text, sizeof(word.text) - 1);
  if (Status status =
          transport.allGather(&word, words.data(), sizeof(word), DType::u8);
      !status.ok())
    return status;
  auto isFilled = [](const Word &one) { return one.code != Code::Ok; };
  auto found = std::ranges::find_if(words, isFilled);
  if (found == words.end())
    return Status();
  found->text[sizeof(found->text) - 1] = 0;
  problem = concat("rank ", found - words.begin(), ": ", found->text);
  code = found->code;
  return Status();
}

/// The first exchange of all, whose size is that of all versions.
Status Communicator::compareBuilds() {
  struct Build {
    char name[kBuildBytes] = {};
  };
  Build own;
  nameBuild().copy(own.name, sizeof(own.name) - 1);
  std::vector<Build> all(rankCount);
  if (Status status =
          transport->allGather(&own, all.data(), sizeof(own), DType::u8);
      !status.ok())
    return lose(status.message(), milliseconds(0));
  for (Build &build : all)
    build.name[kBuildBytes - 1] = 0;
  for (int rank = 1; rank < rankCount; ++rank)
    if (std::string_view(all[rank].name) != all[0].name)
      return makeError(Code::Usage, "ranks are of several builds: rank ", rank,
                       " is ", all[rank].name, ", rank 0 is ", all[0].name);
  return Status();
}

/// The hub names the rank that does not come before calls that wait for it
/// fail.
static milliseconds timeoutOf(const HubPlace &place, bool isWatched) {
  constexpr milliseconds kLater = std::chrono::seconds(5);
  milliseconds time(place.collective);
  return isWatched && time.count() > 0 ? time + kLater : time;
}

Status Communicator::watch(const std::string &host, const Patience &patience) {
  if (Status status = compareBuilds(); !status.ok())
    return status;
  HubPlace place = {.collective = uint32_t(patience.collective.count())};
  Status own;
  auto note = [&](Result<std::unique_ptr<Watch>> opened) {
    if (opened.ok())
      heartbeat = std::move(*opened);
    else
      own = opened.takeStatus();
  };
  if (ownRank == 0) {
    note(Watch::listen(rankCount, recorder, host, patience));
    if (heartbeat)
      place = heartbeat->place();
  }
  Status status = transport->broadcast(&place, &place, sizeof(place), DType::u8,
                                       /*root=*/0);
  if (status.ok() && ownRank > 0 && place.port > 0)
    note(Watch::join(ownRank, recorder, place));
  std::string problem;
  Code code = Code::Ok;
  if (status.ok())
    status = share(*transport, rankCount, own, problem, code);
  if (!status.ok())
    return lose(status.message(), milliseconds(0));
  if (problem.empty() && !heartbeat)
    problem = "rank 0 has no address";
  longest = timeoutOf(place, problem.empty());
  transport->setTimeout(longest);
  if (!problem.empty()) {
    heartbeat.reset();
    ownNote = concat("ranks go on without heartbeats: ", problem);
    return Status();
  }
  heartbeat->begin([this] { abort(); });
  return Status();
}

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

void Communicator::attach(DeviceCalls *calls) {
  std::lock_guard lock(mutex);
  device = calls;
}

void Communicator::abort() {
  recorder.freeze();
  transport->abort();
  std::lock_guard lock(mutex);
  if (device)
    device->abort();
}

bool Communicator::isLost() {
  return !loss.empty() || (heartbeat && heartbeat->findLoss());
}

Status Communicator::fail(std::string_view why) {
  if (!loss.empty())
    return Status(Code::Peer, loss);
  std::chrono::nanoseconds took(recorder.now() -
                                recorder.position().last.begin);
  return lose(why, duration_cast<milliseconds>(took));
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// Names the rank that was lost, if anybody knows.
Status Communicator::lose(std::string_view why, milliseconds ago) {
  std::optional<Loss> found;
  if (heartbeat)
    found = heartbeat->explain(why, ago);
  Sighting own = seeOwn(ownRank, recorder.position());
  if (!found) {
    found = {.who = own, .cause = Cause::Failed};
    why.copy(found->why, sizeof(found->why) - 1);
  }
  loss = describe(*found, own);
  heartbeat.reset();
  abort();
  return Status(Code::Peer, loss);
}

template <typename Call>
Status Communicator::perform(CollectiveKind kind, size_t count, DType dtype,
                             std::string_view of, Call call) {
  if (!loss.empty())
    return Status(Code::Peer, loss);
  if (device)
    if (Status status = device->settle(); !status.ok())
      return status;
  recorder.begin(kind, count, dtype, of);
  int64_t begin = recorder.now();
  bool isLost = heartbeat && heartbeat->findLoss();
  Status status = isLost ? Status(Code::Peer, "") : call();
  if (status.ok())
    recorder.end();
  if (status.code() != Code::Peer)
    return status;
  std::chrono::nanoseconds took(recorder.now() - begin);
  return lose(status.message(), duration_cast<milliseconds>(took));
}

Status Communicator::agree(const Status &own) {
  std::string problem;
  Code code = Code::Ok;
  Status status =
      perform(CollectiveKind::AllGather, 1, DType::u8, "what ranks agree on",
              [&] { return share(*transport, rankCount, own, problem, code); });
  return status.ok() && !problem.empty() ? Status(code, problem)
                                         : std::move(status);
}

Status Communicator::allReduce(const void *from, void *to, size_t count,
                               DType dtype, std::string_view of,
                               SumOrder order) {
  return perform(CollectiveKind::AllReduce, count, dtype, of, [&] {
    return order == SumOrder::Tree
               ? tree.add(*transport, rankCount, from, to, count, dtype)
               : transport->allReduce(from, to, count, dtype);
  });
}

Status Communicator::reduceScatter(const void *from, void *to, size_t count,
                                   DType dtype, std::string_view of) {
  return perform(CollectiveKind::ReduceScatter, count, dtype, of, [&] {
    return transport->reduceScatter(from, to, count, dtype);
  });
}

Status Communicator::allGather(const void *from, void *to, size_t count,
                               DType dtype, std::string_view of) {
  return perform(CollectiveKind::AllGather, count, dtype, of,
                 [&] { return transport->allGather(from, to, count, dtype); });
}

Status Communicator::broadcast(const void *from, void *to, size_t count,
                               DType dtype, int root, std::string_view of) {
  if (root < 0 || root >= rankCount)
    return makeError(Code::Usage, "a broadcast of rank ", root, " of ",
                     rankCount);
  return perform(CollectiveKind::Broadcast, count, dtype, of, [&] {
    return transport->broadcast(from, to, count, dtype, root);
  });
}

Status Communicator::barrier() {
  return perform(CollectiveKind::Barrier, 0, DType::u8, {},
                 [&] { return transport->barrier(); });
}

Status Communicator::close() {
  Status status = perform(CollectiveKind::Barrier, 0, DType::u8, "the end",
                          [&] { return transport->close(); });
  if (!status.ok())
    return status;
  if (heartbeat)
    heartbeat->sayGoodbye();
  heartbeat.reset();
  loss = "the ranks have ended";
  return Status();
}

/// The others learn the reason before their calls fail.
void Communicator::leave() {
  if (!loss.empty())
    return;
  loss = concat(nameOf(seeOwn(ownRank, {})), " left after an error");
  heartbeat.reset();
  abort();
}

/// Every rank sees the same digests, and so the same difference.
Status Communicator::compare(const format::Digest &digest, const char *what) {
  std::vector<format::Digest> all(size());
  if (Status status = allGather(&digest, all.data(), sizeof(digest), DType::u8,
                                "what ranks compare");
      !status.ok())
    return status;
  for (size_t rank = 1; rank < all.size(); ++rank)
    if (!std::ranges::equal(all[rank].bytes, all[0].bytes))
      return makeError(Code::Usage, "rank ", rank, " has ", what,
                       " than rank 0");
  return Status();
}
