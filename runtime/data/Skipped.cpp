#include "runtime/data/Skipped.h"

#include "runtime/data/SplitMix64.h"

#include <algorithm>

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
  Result<SampleRoom> needs(int64_t sample) const override {
    auto found = source->needs(sample);
    if (found.ok())
      return found;
    Status status = found.takeStatus();
    if (status.code() == Code::BadData)
      skipped->add(number, sample, status.message());
    return status;
  }
  Status read(int64_t epoch, int64_t sample, SampleParts parts) const override;

private:
  int64_t draw(SplitMix64 &draws, SampleParts parts) const;

  const std::unique_ptr<SampleSource> source;
  const size_t number; ///< of the source
  const std::shared_ptr<SkippedSamples> skipped;
};

} // namespace

/// A sample that there is room for, as far as some tries find one.
int64_t Skipping::draw(SplitMix64 &draws, SampleParts parts) const {
  constexpr int kTries = 1024;
  auto hasRoom = [](std::span<const std::byte> part, size_t bytes) {
    return bytes <= part.size();
  };
  int64_t drawn = 0;
  for (int i = 0; i < kTries; ++i) {
    drawn = int64_t(draws.next() % uint64_t(sampleCount()));
    auto needed = source->needs(drawn);
    // If all samples are of one size, none is too large.
    if (needed.ok() ? std::ranges::equal(parts, *needed, hasRoom)
                    : needed.takeStatus().code() == Code::Usage)
      break;
  }
  return drawn;
}

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
    chosen = draw(draws, parts);
  }
}

std::unique_ptr<SampleSource>
runtime::skipDamaged(std::unique_ptr<SampleSource> source, size_t number,
                     std::shared_ptr<SkippedSamples> skipped) {
  return std::make_unique<Skipping>(std::move(source), number,
                                    std::move(skipped));
}
