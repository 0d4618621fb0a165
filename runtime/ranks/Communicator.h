//===- Communicator.h - What ranks do together ------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_RANKS_COMMUNICATOR_H
#define TCC_RUNTIME_RANKS_COMMUNICATOR_H

#include "runtime/base/Status.h"
#include "runtime/package/DType.h"
#include "runtime/package/Format.h"

namespace tcc::runtime {

/// The ranks of one run, of which this process is one. Buffers are dense, of
/// the host's memory, and multiples of their elements' alignment; `count` is of
/// elements. All ranks make the same calls with the same counts and types in
/// the same order; one thread at a time makes them. A call returns when the
/// rank's own buffers are done, not when those of others are.
///
/// A rank that is gone is an error (Code::Peer) of the call under way and of
/// all later ones; what that call wrote is undefined then. Sums are of the
/// types that `isSummedByRanks` (Code::Unsupported), and give all ranks the
/// same bits.
class Communicator {
public:
  virtual ~Communicator() = default;

  int rank() const { return ownRank; }
  int size() const { return rankCount; }
  /// Of the transport, as messages have it.
  virtual std::string_view name() const = 0;

  /// to[i] = sum_r from_r[i], i < count. `from` may be `to`.
  virtual Status allReduce(const void *from, void *to, size_t count,
                           DType dtype) = 0;
  /// to[i] = sum_r from_r[rank * count + i], i < count.
  virtual Status reduceScatter(const void *from, void *to, size_t count,
                               DType dtype) = 0;
  /// to[r * count + i] = from_r[i], i < count.
  virtual Status allGather(const void *from, void *to, size_t count,
                           DType dtype) = 0;
  /// to[i] = from_root[i], i < count. `from` may be `to`; only the root's is
  /// read.
  virtual Status broadcast(const void *from, void *to, size_t count,
                           DType dtype, int root) = 0;
  /// Returns once all ranks have called it.
  virtual Status barrier() = 0;

  /// The last call of a rank that did its part; returns once all have called
  /// it. A rank that ends without it is gone for the others.
  virtual Status close() { return barrier(); }
  /// This rank does not go on: others that wait for it hear of it, with MPI
  /// when the process ends. Later calls fail.
  virtual void leave() {}

  /// Fails with Code::Usage at all ranks where one has another digest than rank
  /// 0 has: "rank R has `what` than rank 0".
  Status compare(const format::Digest &digest, const char *what);

protected:
  Communicator(int rank, int size) : ownRank(rank), rankCount(size) {}

private:
  int ownRank, rankCount;
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_RANKS_COMMUNICATOR_H
