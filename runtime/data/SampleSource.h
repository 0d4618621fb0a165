//===- SampleSource.h - Samples by number -----------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_SAMPLESOURCE_H
#define TCC_RUNTIME_DATA_SAMPLESOURCE_H

#include "runtime/data/SampleFile.h"
#include "runtime/package/Tensor.h"

#include <filesystem>
#include <memory>
#include <optional>

namespace tcc::runtime {

namespace images {
class ImageCache; // images/ImageCache.h
}

/// How a source is read.
struct SourceOptions {
  uint64_t seed = 0;                          ///< of what transforms draw
  std::shared_ptr<images::ImageCache> images; ///< null: none are kept
  Files files = {};
};

/// A tensor of a batch: its samples come first, shape[0] of them.
struct BatchTensor {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  bool isTarget = false; ///< that the loss is of
  /// How many tokens after the model's input this begins in a text, for a
  /// language model. Nothing where the loss is of another kind.
  std::optional<int64_t> tokensAhead = std::nullopt;
  /// The names of what it is read from, numbers of several one after the other.
  /// None: its own, or what the source has for such a tensor.
  std::vector<std::string> fields = {};
  /// See images/Transforms.h; of tokens TokenSource.h.
  std::vector<std::string> transforms = {};
  /// Texts that stand for their positions.
  std::vector<std::string> classes = {};

  /// The class that the loss passes over, if the tensor is a target of classes.
  std::optional<int64_t> ignoreIndex = std::nullopt;
  /// What follows the numbers of a sample that has fewer than it could.
  std::optional<double> pad = std::nullopt;
  /// The shape for each variant of the entry point, where there are several:
  /// `shape` is the one with the largest samples.
  std::vector<std::vector<int64_t>> variants = {};

  /// With the shapes of one or several variants.
  static BatchTensor of(std::string name, DType dtype,
                        std::vector<std::vector<int64_t>> shapes);

  /// The bytes of a sample's part of the tensor, for the largest samples.
  size_t sampleBytes() const;

  /// Whether it has the weights of samples: 1 where a source has no such array.
  bool isWeight() const;

  const std::string &arrayName() const {
    return fields.empty() ? name : fields[0];
  }
};

/// Where a sample is written to: its part of each tensor of a batch, in their
/// order.
using SampleParts = std::span<const std::span<std::byte>>;

/// The bytes of a sample's part of each tensor.
using SampleRoom = std::vector<size_t>;

/// Samples by number, each with a part for every tensor of a batch.
class SampleSource {
public:
  virtual ~SampleSource() = default;
  /// The number of samples of an epoch.
  virtual int64_t sampleCount() const = 0;
  /// A number of 64 random bits that a sample keeps when others come or go, as
  /// far as the source can tell samples apart.
  virtual uint64_t keyOf(int64_t number) const;
  /// The bytes that a sample's numbers take of its part of each tensor, at most
  /// those of `shape`; 0 where it takes all there is. Code::BadData where they
  /// are more, or the sample is damaged; Code::Usage: samples of this source
  /// are all of one size. Several threads call it at once.
  virtual Result<SampleRoom> needs(int64_t number) const;
  /// Writes all of sample `number`, below the count, as it is in that epoch:
  /// the same bytes whenever and by whomever it is called. Several threads call
  /// it at once, for different parts, which have the bytes that it needs, or
  /// more.
  virtual Status read(int64_t epoch, int64_t number,
                      SampleParts parts) const = 0;
};

/// Opens `npz:FILE`, `npy:FOLDER` or `safetensors:FILE` (ArraySource.h),
/// `tokens:FILE,...` or `text:FILE,...` (TokenSource.h), `webdataset:FILE,...`,
/// `images:FOLDER`, `csv:FILE,...`, `jsonl:FILE,...` or `mds:FOLDER`
/// (RecordSamples.h). Code::Usage where a tensor has transforms, classes or
/// several fields, and the source has no records.
Result<std::unique_ptr<SampleSource>>
openSource(const std::string &spec, std::span<const BatchTensor> tensors,
           const SourceOptions &options = {});

/// Whether what `--data` says is a file of a plan (DataPlan.h), not a source.
bool isPlanFile(std::string_view spec);

/// Names in quotes, the first of many, as part of a sentence.
std::string quoteNames(std::span<const std::string> names);

/// The paths of a list that commas divide.
std::vector<std::string> splitPaths(std::string_view list);

/// The same data with paths that are relative to `folder`.
std::string resolveData(const std::string &spec,
                        const std::filesystem::path &folder);
/// The same data for whoever works in another folder.
std::string absoluteData(const std::string &spec);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_SAMPLESOURCE_H
