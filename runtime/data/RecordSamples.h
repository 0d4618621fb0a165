//===- RecordSamples.h - Samples of records ---------------------*- C++ -*-===//
//
// What fields give to a tensor of a batch:
//   f32 of [N, C, H, W]  an image, decoded and transformed, as numbers from 0
//                        to 1; C is 1 or 3; grey is 0.299 R + 0.587 G + 0.114 B
//   u8 of [N, C, H, W]   the same as bytes from 0 to 255
//   both of [N, H, W, C] the same, those of a pixel side by side
//   other shapes         numbers, those of several fields one after the other,
//                        as many as a sample has
//
// The fields are those that the tensor names; of an image they may have one of
// jpg, jpeg, png and webp behind a dot. Else it is the one that has its
// name, or is, of an image, one of jpg, jpeg, png, webp and image, and of a
// target one of cls and label; and of a table all that no other tensor has.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_DATA_RECORDSAMPLES_H
#define TCC_RUNTIME_DATA_RECORDSAMPLES_H

#include "runtime/data/SampleSource.h"
#include "runtime/data/records/RecordSource.h"

namespace tcc::runtime {

/// Samples of records. Code::Usage, with their path, where a tensor is none of
/// the above, no field is for it, or its transforms give another size. What
/// they draw is the same for all tensors of a sample, a function of seed, epoch
/// and number. Of a sample, Code::BadData where it lacks a field, or that is
/// damaged or not as large as the tensor.
Result<std::unique_ptr<SampleSource>>
makeRecordSamples(std::unique_ptr<RecordSource> records,
                  const std::string &path, std::span<const BatchTensor> tensors,
                  const SourceOptions &options);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_RECORDSAMPLES_H
