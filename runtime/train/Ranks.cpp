// What sessions of several ranks do together beside their steps.

#include "runtime/base/Divisors.h"
#include "runtime/package/Digest.h"
#include "runtime/ranks/Communicator.h"
#include "runtime/train/Metrics.h"
#include "runtime/train/Session.h"
#include "runtime/train/TensorMatch.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::runtime;
using format::EntryKind;
using format::StepField;
using format::VariableKind;

int TrainingSession::rank() const { return ranks ? ranks->rank() : 0; }
int TrainingSession::rankCount() const { return ranks ? ranks->size() : 1; }

Status TrainingSession::compareRanks(const format::Digest &digest,
                                     const char *what) const {
  return ranks ? ranks->compare(digest, what) : Status();
}

/// Numbers the update that follows, for messages of a rank that is lost.
void TrainingSession::noteUpdate() const {
  if (ranks)
    ranks->setStep(updatesGiven + 1);
}

/// Ranks that wait for this one hear of its error, unless all have it.
Status TrainingSession::leaveOnFailure(Status status) {
  if (ranks && !status.ok() && status.code() != Code::Numerics)
    ranks->leave();
  return status;
}

Status TrainingSession::checkShare() const {
  int64_t leaves = exactBatches();
  if (leaves % rankCount() == 0)
    return Status();
  return makeError(Code::Usage, "parallel.exact is ", leaves,
                   " batches, which ", rankCount(),
                   " ranks cannot share; these numbers of ranks can: ",
                   listDivisors(leaves));
}

/// Compares packages, before anything is exchanged whose size depends on them.
Status TrainingSession::checkRanks() const {
  if (!ranks)
    return Status();
  if (Status status = compareRanks(program->package().header().tableDigest,
                                   "another package");
      !status.ok())
    return status;
  bool isOfRanks =
      (program->findEntry(EntryKind::reduce_step) || exactBatches() > 0) &&
      program->findEntry(EntryKind::reduce_apply) &&
      store.find(StepField::rank) && store.find(StepField::world);
  return isOfRanks
             ? checkShare()
             : makeError(Code::Usage, "package '", program->package().path(),
                         "' was compiled for one rank: parallel.data = 1");
}

Status TrainingSession::checkTrainable() const {
  if (shardCount == 0 || int64_t(shardCount) == rankCount())
    return Status();
  std::string how;
  if (!ranks)
    how = concat(": run it with --ranks ", shardCount,
                 ", or by mpirun, torchrun or srun");
  return makeError(Code::Usage, "package '", program->package().path(),
                   "' trains on ", shardCount,
                   " ranks (parallel.data = ", shardCount,
                   ", zero = 1), not on ", rankCount(), how);
}

/// Compares settings once. Later changes are not compared: whoever makes them
/// makes them at all ranks.
Status TrainingSession::compareSettings() {
  if (!ranks || std::exchange(areSettingsCompared, true))
    return Status();
  DigestStream digest;
  const auto *settings = program->program().settings();
  for (uint32_t i = 0; settings && i < settings->size(); ++i) {
    uint32_t variable = settings->Get(i)->variable();
    std::vector<std::byte> bytes(store.byteCount(variable));
    if (Status status = store.read(variable, bytes); !status.ok())
      return status;
    digest.update(bytes);
  }
  return compareRanks(digest.finish(), "other settings");
}

/// Whether updates are known to leave it the same at all ranks. A rank has
/// running statistics of its own batches, sums that grow between updates, its
/// parts, and its number; copies follow from parameters.
static bool isSameAtAllRanks(const format::Variable &variable) {
  if (variable.ranks() > 0)
    return false;
  if (auto field = variable.field())
    return *field != StepField::rank && *field != StepField::loss &&
           *field != StepField::count;
  return variable.kind() != VariableKind::buffer &&
         variable.kind() != VariableKind::gradient &&
         variable.kind() != VariableKind::partial &&
         variable.kind() != VariableKind::step &&
         variable.kind() != VariableKind::rounded;
}

/// The ranks whose digest `index` is not that of rank 0. Each rank has `count`
/// digests in `all`, one rank's after the other's.
static std::string listOthers(std::span<const format::Digest> all, size_t count,
                              size_t index) {
  std::string others;
  for (size_t rank = 1; rank < all.size() / count; ++rank)
    if (!std::ranges::equal(all[rank * count + index].bytes, all[index].bytes))
      others += concat(others.empty() ? "" : ", ", rank);
  return others;
}

Status TrainingSession::compareVariables() const {
  if (!ranks)
    return Status();
  auto snapshot = store.snapshot();
  if (!snapshot.ok())
    return snapshot.takeStatus();
  std::vector<size_t> compared;
  std::vector<format::Digest> own;
  for (size_t i = 0; i < store.size(); ++i)
    if (isSameAtAllRanks(store.describe(i))) {
      compared.push_back(i);
      own.push_back(digestOf(snapshot->bytes(i)));
    }
  std::vector<format::Digest> all(own.size() * rankCount());
  if (Status status =
          ranks->allGather(own.data(), all.data(), own.size() * sizeof(own[0]),
                           DType::u8, "digests of the variables");
      !status.ok())
    return status;
  for (size_t i = 0; i < own.size(); ++i)
    if (std::string others = listOthers(all, own.size(), i); !others.empty())
      return makeError(Code::Peer, "after update ", stepCount(), " variable '",
                       store.describe(compared[i]).name()->string_view(),
                       "' has other bits at rank ", others, " than at rank 0");
  return Status();
}

/// Gives all ranks a variable of rank 0, where a device is not the host by a
/// copy there.
Status TrainingSession::shareVariable(size_t index) {
  std::string_view name = store.describe(index).name()->string_view();
  if (program->device().isHost()) {
    std::span<std::byte> bytes = store.beginWrite(index);
    return ranks->broadcast(bytes.data(), bytes.data(), bytes.size(), DType::u8,
                            /*root=*/0, name);
  }
  std::vector<std::byte> bytes(store.byteCount(index));
  if (rank() == 0)
    if (Status status = store.read(index, bytes); !status.ok())
      return status;
  if (Status status = ranks->broadcast(bytes.data(), bytes.data(), bytes.size(),
                                       DType::u8, /*root=*/0, name);
      !status.ok())
    return status;
  return rank() == 0 ? Status() : store.write(index, bytes);
}

/// Gives all ranks the variables of rank 0 but its parts of others.
Status TrainingSession::shareVariables() {
  if (!ranks)
    return Status();
  for (size_t i = 0; i < store.size(); ++i)
    if (Status status =
            store.describe(i).ranks() > 0 ? Status() : shareVariable(i);
        !status.ok())
      return status;
  return writeRank();
}

Status TrainingSession::shareBuffers() {
  for (size_t i = 0; ranks && i < store.size(); ++i)
    if (store.describe(i).kind() == VariableKind::buffer)
      if (Status status = shareVariable(i); !status.ok())
        return status;
  return Status();
}

Status TrainingSession::shareText(std::string &text) const {
  if (!ranks)
    return Status();
  int64_t size = text.size();
  if (Status status = ranks->broadcast(&size, &size, /*count=*/1, DType::i64,
                                       /*root=*/0, "the size of a text");
      !status.ok())
    return status;
  text.resize(size);
  return ranks->broadcast(text.data(), text.data(), size, DType::u8, /*root=*/0,
                          "a text");
}

/// Means in parts begin as the parameters, as whole ones do in `init`, which
/// knows no rank.
Status TrainingSession::startMeans() {
  for (const Piece &piece : store.pieces(rank())) {
    const LogicalTensor &mean = store.tensors()[piece.tensor];
    auto parameter = store.find(mean.parameter);
    if (!mean.isDivided || !parameter ||
        store.describe(mean.variable).kind() != VariableKind::ema)
      continue;
    DType from = store.describe(*parameter).dtype();
    size_t step = traitsOf(from).bytes, width = traitsOf(mean.dtype).bytes;
    std::vector<std::byte> whole(store.byteCount(*parameter));
    std::vector<std::byte> part(piece.count * width);
    if (Status status = store.read(*parameter, whole); !status.ok())
      return status;
    convert(from,
            std::span(whole).subspan(piece.begin * step, piece.count * step),
            mean.dtype, part);
    if (Status status = store.write(mean.variable, piece.at * width, part);
        !status.ok())
      return status;
  }
  return Status();
}

Status TrainingSession::writeField(StepField field, int64_t value) {
  auto index = store.find(field);
  if (!index || read(field) == value)
    return Status();
  return store.write(*index, std::as_bytes(std::span(&value, 1)));
}

Status TrainingSession::writeRank() {
  if (Status status = writeField(StepField::rank, rank()); !status.ok())
    return status;
  if (Status status = writeField(StepField::world, rankCount()); !status.ok())
    return status;
  readBatchNumber();
  return Status();
}

Status TrainingSession::addUp(Evaluation &sum) {
  if (!ranks)
    return Status();
  // A rank that evaluated no batch does not know what the model is.
  std::vector<double> sums = {sum.loss, sum.count, double(sum.correct),
                              double(sum.isClassifier)};
  size_t fields = sums.size();
  sum.sums.resize(countSums(program->program()));
  sums.insert(sums.end(), sum.sums.begin(), sum.sums.end());
  if (Status status = ranks->allReduce(sums.data(), sums.data(), sums.size(),
                                       DType::f64, "the evaluation");
      !status.ok())
    return status;
  sum = {sums[0],
         sums[1],
         static_cast<int64_t>(sums[2]),
         sums[3] > 0,
         {sums.begin() + fields, sums.end()}};
  return Status();
}
