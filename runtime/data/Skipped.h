//===- Skipped.h - Damaged samples that others stand in for -----*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_SKIPPED_H
#define TCC_RUNTIME_DATA_SKIPPED_H

#include "runtime/data/SampleSource.h"

#include <mutex>
#include <set>
#include <utility>

namespace tcc::runtime {

/// The damaged samples that were met. Callable from any thread.
class SkippedSamples {
public:
  /// A sample of one of several sources.
  void add(size_t source, int64_t number, std::string_view problem);
  /// How many there are, each counted once.
  int64_t count() const;
  /// What was wrong with those that were met since the last call; of the first
  /// ones only.
  std::vector<std::string> takeProblems();

private:
  static constexpr size_t kMostNamed = 10;

  mutable std::mutex mutex;
  std::set<std::pair<size_t, int64_t>> samples;
  std::vector<std::string> problems;
};

/// The samples of source `number`; for one that is damaged (Code::BadData)
/// another one of it stands, a function of epoch and sample. Fails where many
/// that could are damaged, too.
std::unique_ptr<SampleSource>
skipDamaged(std::unique_ptr<SampleSource> source, size_t number,
            std::shared_ptr<SkippedSamples> skipped);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_SKIPPED_H
