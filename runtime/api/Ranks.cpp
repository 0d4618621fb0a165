// Sessions of several ranks in the C API.

#include "runtime/api/Ranks.h"
#include "runtime/api/Handles.h"

#include "runtime/ranks/OpenCommunicator.h"

#include <algorithm>
#include <map>

using namespace tcc;
using namespace tcc::runtime;

/// What the options say is read as if a launcher had said it.
static Result<Launch> readLaunchOf(const tcc_session_options &given) {
  if (given.ranks == TCC_LAUNCHED)
    return readLaunch();
  if (given.ranks < 0)
    return makeError(Code::Usage, "a session of ", given.ranks, " ranks");
  if (given.ranks <= 1)
    return Launch();
  if (!given.rendezvous)
    return makeError(Code::Usage, "a session of ", given.ranks,
                     " ranks needs a rendezvous");
  const std::map<std::string_view, std::string> values = {
      {"RANK", std::to_string(given.rank)},
      {"WORLD_SIZE", std::to_string(given.ranks)},
      {"TCC_RENDEZVOUS", given.rendezvous}};
  return readLaunch([&](const char *name) {
    auto found = values.find(name);
    return found == values.end() ? nullptr : found->second.c_str();
  });
}

Result<std::unique_ptr<Communicator>>
runtime::joinRanks(const tcc_session_options &given) {
  Result<Launch> launch = readLaunchOf(given);
  if (!launch.ok())
    return launch.takeStatus();
  if (launch->size == 1)
    return std::unique_ptr<Communicator>();
  Result<Patience> patience = readPatience();
  if (!patience.ok())
    return patience.takeStatus();
  auto communicator = openCommunicator(*launch, *patience);
  if (communicator.ok())
    return communicator;
  Status status = communicator.takeStatus();
  return makeError(status.code(), "rank ", launch->rank, " of ", launch->size,
                   ": ", status.message());
}

int32_t tcc_session_rank(const tcc_session *session) {
  return session->session->rank();
}

int32_t tcc_session_rank_count(const tcc_session *session) {
  return session->session->rankCount();
}

int64_t tcc_session_batch_number(const tcc_session *session) {
  return session->session->batchNumber();
}

tcc_status tcc_session_add_up(tcc_session *session, tcc_evaluation *sum) {
  return guard([&]() -> Status {
    // Zeros of a rank without a batch do not say what the model is.
    bool isClassifier = sum->count > 0 && sum->correct >= 0;
    Evaluation all = {sum->loss, sum->count, isClassifier ? sum->correct : 0,
                      isClassifier};
    Status status = session->session->addUp(all);
    if (status.ok())
      *sum = {all.loss, all.count, all.isClassifier ? all.correct : -1};
    return status;
  });
}

tcc_status tcc_session_close(tcc_session *session) {
  return guard(
      [&] { return session->ranks ? session->ranks->close() : Status(); });
}

const char *tcc_session_ranks_note(const tcc_session *session) {
  return session->ranks ? session->ranks->note().c_str() : "";
}

static_assert(TCC_BARRIER == int(kLastCollectiveKind) &&
              TCC_COLLECTIVES_KEPT == Recorder::kKept &&
              TCC_COLLECTIVE_OF == sizeof(CollectiveCall::of));

static tcc_collective describe(const CollectiveCall &call) {
  tcc_collective found = {.number = call.number,
                          .step = call.step,
                          .kind = static_cast<tcc_collective_kind>(call.kind),
                          .dtype = static_cast<tcc_dtype>(call.dtype),
                          .count = call.count,
                          .begin_ns = call.begin,
                          .end_ns = call.end,
                          .of = {}};
  std::ranges::copy(call.of, found.of);
  return found;
}

size_t tcc_session_collectives(const tcc_session *session,
                               tcc_collective *calls, size_t count) {
  size_t found = 0;
  auto copyLast = [&]() -> Status {
    if (!session->ranks)
      return Status();
    std::vector<CollectiveCall> kept = session->ranks->collectives();
    size_t first = kept.size() - std::min(kept.size(), count);
    for (; first < kept.size(); ++first)
      calls[found++] = describe(kept[first]);
    return Status();
  };
  // Without memory for a copy there are none to tell.
  tcc_status_free(guard(copyLast));
  return found;
}

tcc_status tcc_session_share(tcc_session *session) {
  return guard([&] { return session->session->shareVariables(); });
}

tcc_status tcc_session_compare_ranks(tcc_session *session) {
  return guard([&] { return session->session->compareVariables(); });
}
