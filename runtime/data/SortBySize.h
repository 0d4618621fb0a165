//===- SortBySize.h - Samples into variants of their size -------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_SORTBYSIZE_H
#define TCC_RUNTIME_DATA_SORTBYSIZE_H

#include "runtime/data/BatchOrder.h"
#include "runtime/data/SampleSource.h"

namespace tcc::runtime {

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
