// Sessions of several ranks in the C API.

#include "runtime/api/Ranks.h"
#include "runtime/api/Handles.h"

#include "runtime/ranks/OpenCommunicator.h"

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

tcc_status tcc_session_share(tcc_session *session) {
  return guard([&] { return session->session->shareVariables(); });
}
