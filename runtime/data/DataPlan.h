//===- DataPlan.h - What data are and how they are read ---------*- C++ -*-===//
//
// The table [data] of a TOML file, and settings of its keys:
//
//   [data]
//   source = "webdataset:train-{000..123}.tar"  # or a list of sources
//   weights = [2, 1]    # how often training draws from each source
//   map = {image = "jpg", labels = "cls"}       # the field of each input, or
//                       # a list, whose numbers come one after the other
//   classes = {labels = ["cat", "dog"]}         # texts that are 0, 1, ...
//   pad = {tokens = 0}  # what follows the numbers of shorter samples
//   workers = 2         # threads that read ahead, or "auto"
//   depth = 4           # batches in memory, or "auto"
//   mix = ["mixup 0.2", "cutmix 1"]    # how batches of training are mixed
//   balance = "labels"  # training takes samples of each class as often
//   memory = "2GiB"     # that batches take at most
//   cache = "ram:8GiB"  # for decoded images; or "disk:FOLDER:100GiB", for what
//                       # is read of files; or a list of both
//   on_bad = "skip"     # what a damaged sample does: "skip" or "stop"
//   split = 0.1         # the share that is kept for evaluations
//   [data.train]        # transforms of inputs: images/Transforms.h,
//                       # records/Numbers.h, TokenSource.h
//   image = ["random_resized_crop 224", "flip"]
//   [data.eval]
//   image = ["resize 256", "center_crop 224"]
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_DATA_DATAPLAN_H
#define TCC_RUNTIME_DATA_DATAPLAN_H

#include "runtime/data/BatchLoader.h"

#include <map>

namespace tcc::runtime {

class SkippedSamples; // Skipped.h

/// What samples are read for.
enum class DataPhase { train, eval };

/// The key of a phase's transforms.
const char *nameOf(DataPhase phase);

struct DataPlan {
  using Lists = std::map<std::string, std::vector<std::string>>;

  std::vector<std::string> sources; ///< see openSource
  std::vector<double> weights;      ///< of each source; empty: all samples once
  Lists fields;      ///< of inputs, whose numbers follow one another
  Lists classes;     ///< of inputs: texts that stand for their positions
  Lists train, eval; ///< of inputs, in order
  std::map<std::string, double> pads; ///< of inputs
  std::vector<MixingLine>
      mixing; ///< of which each batch takes one; empty: none
  std::optional<int> workers, depth; ///< nothing: "auto"
  std::optional<int64_t> memory;     ///< bytes of batches, at most
  /// Shared by the loaders of this plan and of its copies; null: none.
  std::shared_ptr<images::ImageCache> images;
  std::shared_ptr<SharedBlockCache> blocks; ///< likewise, of what files have
  std::string balance; ///< the input of classes that training takes as often
  bool skipsBad = false;
  double split = 0; ///< 0: all samples are for training, and for evaluations

  /// In place of the whole plan, keys of [data] as TOML. Code::BadData where
  /// one is wrong.
  Status read(std::string_view keys);
  /// What `--data` means: a source, or a file NAME.toml, whose paths are
  /// relative to its folder, in place of the whole plan. Code::BadData, with
  /// the line, where the file is wrong or has an unknown key.
  Status use(const std::string &spec);
  /// One key, as `on_bad` or `train.image`, to a value of TOML; text needs no
  /// quotes. Code::Usage where there is no such key or value.
  Status set(std::string_view key, std::string_view value);

  const Lists &transformsOf(DataPhase phase) const {
    return phase == DataPhase::train ? train : eval;
  }
};

/// Opens what a plan has for the tensors of a batch. `seed` is what all that is
/// random in samples depends on, beside epoch and number. If the plan skips
/// damaged samples, `skipped` hears of them.
Result<std::unique_ptr<SampleSource>>
openData(const DataPlan &plan, DataPhase phase,
         std::span<const BatchTensor> tensors, uint64_t seed,
         std::shared_ptr<SkippedSamples> skipped);

/// What a plan does with the samples of source `number`, wherever they come
/// from: its split, and what damaged ones do.
std::unique_ptr<SampleSource> applyPlan(const DataPlan &plan, DataPhase phase,
                                        std::unique_ptr<SampleSource> source,
                                        std::shared_ptr<SkippedSamples> skipped,
                                        size_t number = 0);

/// Loads a source with the plan's threads and memory.
Result<BatchLoader> makeLoader(const DataPlan &plan, DataPhase phase,
                               std::unique_ptr<SampleSource> source,
                               std::span<const BatchTensor> tensors,
                               uint64_t seed, bool shuffles);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_DATAPLAN_H
