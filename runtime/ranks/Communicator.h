//===- Communicator.h - What ranks do together ------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_RANKS_COMMUNICATOR_H
#define TCC_RUNTIME_RANKS_COMMUNICATOR_H

#include "runtime/package/Format.h"
#include "runtime/ranks/Patience.h"
#include "runtime/ranks/Recorder.h"
#include "runtime/ranks/Transport.h"
#include "runtime/ranks/TreeSum.h"

#include <memory>
#include <mutex>

namespace tcc::runtime {

class Watch;

/// Collectives that a device does with a library of its own. Those that it was
/// given and those of the host have one order, which is that of their numbers.
class DeviceCalls {
public:
  virtual ~DeviceCalls() = default;

  /// Returns when all that the device was given is done, or cannot be done.
  virtual Status settle() = 0;
  /// What is under way and what is given later ends soon, here and at ranks
  /// that wait for this one. Any thread, at any time; returns at once.
  virtual void abort() = 0;
};

/// The ranks of one run, of which this process is one. Buffers are dense, of
/// the host's memory, and multiples of their elements' alignment; `count` is of
/// elements; `of` says for messages what a call is of, such as a node of the
/// model. All ranks make the same calls with the same counts and types in the
/// same order; one thread at a time makes them. A call returns when the rank's
/// own buffers are done, not when those of others are.
///
/// A rank that is gone is an error (Code::Peer) of the call under way and of
/// all later ones, which says which one, why, and where both ranks were; what
/// that call wrote is undefined then. Sums are of the types that
/// `isSummedByRanks` (Code::Unsupported), and give all ranks the same bits.
class Communicator {
public:
  Communicator(std::unique_ptr<Transport> transport, int rank, int size);
  /// Without `close` before, the rank leaves.
  ~Communicator();

  /// Begins heartbeats, as all ranks do at the same time, and ends the time of
  /// the rendezvous. The hub of the watch is at `host`, or at all addresses of
  /// rank 0's machine if that is empty. Where a rank cannot reach it there are
  /// none: see `note`. Fails with Code::Usage at all ranks where one is of
  /// another build of the runtime than rank 0.
  Status watch(const std::string &host, const Patience &patience);

  int rank() const { return ownRank; }
  int size() const { return rankCount; }
  /// The transport's name in messages.
  std::string_view name() const { return transport->name(); }
  /// What the user should know of these ranks; empty if nothing.
  const std::string &note() const { return ownNote; }

  /// to[i] = sum_r from_r[i], i < count. `from` may be `to`. In a tree,
  /// Code::Usage unless there are a power of two of ranks.
  Status allReduce(const void *from, void *to, size_t count, DType dtype,
                   std::string_view of = {}, SumOrder order = SumOrder::Any);
  /// to[i] = sum_r from_r[rank * count + i], i < count. `to` may be this rank's
  /// part of `from`, from + rank * count: then `from` is undefined elsewhere.
  Status reduceScatter(const void *from, void *to, size_t count, DType dtype,
                       std::string_view of = {});
  /// to[r * count + i] = from_r[i], i < count. `from` may be this rank's part
  /// of `to`, to + rank * count.
  Status allGather(const void *from, void *to, size_t count, DType dtype,
                   std::string_view of = {});
  /// to[i] = from_root[i], i < count. `from` may be `to`; only the root's is
  /// read.
  Status broadcast(const void *from, void *to, size_t count, DType dtype,
                   int root, std::string_view of = {});
  /// Returns once all ranks have called it.
  Status barrier();

  /// Calls of a device are part of those of the rank from now on, until null
  /// is given: those of the host wait for what it was given before, and a rank
  /// that is gone ends them. It outlives that.
  void attach(DeviceCalls *calls);
  /// Notes a call that the device was given: see Recorder::give.
  void give(CollectiveKind kind, size_t count, DType dtype, std::string_view of,
            DeviceProgress &progress, uint64_t index) {
    recorder.give(kind, count, dtype, of, progress, index);
  }
  /// See Recorder::freeze.
  void freeze() { recorder.freeze(); }
  /// See Recorder::forget.
  void forget(const DeviceProgress &progress) { recorder.forget(progress); }
  /// Where this rank is. Any thread.
  Position position() const { return recorder.position(); }
  /// Whether a rank is known to be gone, so that calls fail.
  bool isLost();
  /// The error (Code::Peer) of the device's call under way, which failed or was
  /// ended; `why` is what its library says, if anything.
  Status fail(std::string_view why);
  /// How long a call may take, 0 for ever.
  std::chrono::milliseconds timeout() const { return longest; }
  /// Fails at all ranks, with the same words, where one has a problem.
  Status agree(const Status &own);

  /// The last call of a rank that did its part; returns once all have called
  /// it. A rank that ends without it is gone for the others.
  Status close();
  /// This rank does not go on: others that wait for it hear of it. Later calls
  /// fail.
  void leave();

  /// Fails with Code::Usage at all ranks where one has another digest than rank
  /// 0 has: "rank R has `what` than rank 0".
  Status compare(const format::Digest &digest, const char *what);

  /// The number of the update that follows, for messages. Any thread.
  void setStep(int64_t number) { recorder.setStep(number); }
  /// The last collectives of this rank, the oldest first. Any thread.
  std::vector<CollectiveCall> collectives() const {
    return recorder.collectives();
  }

private:
  template <typename Call>
  Status perform(CollectiveKind kind, size_t count, DType dtype,
                 std::string_view of, Call call);
  Status lose(std::string_view why, std::chrono::milliseconds ago);
  void abort();
  Status compareBuilds();

  const int ownRank, rankCount;
  Recorder recorder;
  std::unique_ptr<Transport> transport;
  TreeSum tree;
  std::mutex mutex;              ///< guards `device`, which a watch may end
  DeviceCalls *device = nullptr; ///< null if it has no calls of its own
  std::chrono::milliseconds longest{0};
  std::unique_ptr<Watch> heartbeat; ///< null without, and at the end
  std::string loss;                 ///< why calls fail, once they do
  std::string ownNote;
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_RANKS_COMMUNICATOR_H
