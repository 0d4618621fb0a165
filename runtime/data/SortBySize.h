//===- SortBySize.h - Samples into variants of their size -------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_SORTBYSIZE_H
#define TCC_RUNTIME_DATA_SORTBYSIZE_H

#include "runtime/data/BatchOrder.h"
#include "runtime/data/SampleSource.h"

#include <functional>

namespace tcc::runtime {

/// Calls `take` with what each sample needs, by as many threads as there are
/// CPUs, several at once. Damaged samples are passed over with `skipsBad`. The
/// error is that of the first sample that has one, its own or `take`'s.
Status lookAtAll(
    const SampleSource &source, bool skipsBad,
    const std::function<Status(int64_t number, const SampleRoom &)> &take);

/// Sorts samples by the variants of tensors, which have several: a sample is of
/// the smallest one that it fits. Of variants with samples of one size the one
/// of the largest batches has them. Reads each sample's numbers once, by as
/// many threads as there are CPUs. Damaged samples are in no bucket, or fail
/// without `skipsBad`. Code::Usage where samples of no variant are the
/// smallest, or their sizes differ along another axis than their first.
Result<SortedSamples> sortBySize(const SampleSource &source,
                                 std::span<const BatchTensor> tensors,
                                 bool skipsBad);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_SORTBYSIZE_H
