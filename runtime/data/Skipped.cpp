#include "runtime/data/Skipped.h"

#include "runtime/data/SplitMix64.h"

using namespace tcc;
using namespace tcc::runtime;

void SkippedSamples::add(size_t source, int64_t number,
                         std::string_view problem) {
  std::unique_lock lock(mutex);
  if (samples.insert({source, number}).second && samples.size() <= kMostNamed)
    problems.emplace_back(problem);
}

int64_t SkippedSamples::count() const {
  std::unique_lock lock(mutex);
  return int64_t(samples.size());
}

std::vector<std::string> SkippedSamples::takeProblems() {
  std::unique_lock lock(mutex);
  return std::exchange(problems, {});
}

namespace {

class Skipping final : public SampleSource {
public:
  Skipping(std::unique_ptr<SampleSource> source, size_t number,
           std::shared_ptr<SkippedSamples> skipped)
      : source(std::move(source)), number(number), skipped(std::move(skipped)) {
  }

  int64_t sampleCount() const override { return source->sampleCount(); }
  uint64_t keyOf(int64_t sample) const override {
    return source->keyOf(sample);
  }
  Status read(int64_t epoch, int64_t sample, SampleParts parts) const override;

private:
  const std::unique_ptr<SampleSource> source;
  const size_t number; ///< of the source
  const std::shared_ptr<SkippedSamples> skipped;
};

} // namespace

/// Others are drawn: those beside a damaged one often are so, too.
Status Skipping::read(int64_t epoch, int64_t sample, SampleParts parts) const {
  constexpr int kTries = 64;
  auto draws = SplitMix64::of(0, uint64_t(epoch), uint64_t(sample));
  int64_t chosen = sample;
  for (int i = 0;; ++i) {
    Status status = source->read(epoch, chosen, parts);
    if (status.code() != Code::BadData)
      return status;
    skipped->add(number, chosen, status.message());
    if (i == kTries)
      return makeError(Code::BadData, kTries,
                       " samples that were to stand for a damaged one are "
                       "damaged, too, the last one: ",
                       status.message());
    chosen = int64_t(draws.next() % uint64_t(sampleCount()));
  }
}

std::unique_ptr<SampleSource>
runtime::skipDamaged(std::unique_ptr<SampleSource> source, size_t number,
                     std::shared_ptr<SkippedSamples> skipped) {
  return std::make_unique<Skipping>(std::move(source), number,
                                    std::move(skipped));
}
