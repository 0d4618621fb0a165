#include "runtime/data/BucketSizes.h"
#include "runtime/data/DataPlan.h"
#include "runtime/data/Skipped.h"
#include "runtime/data/SortBySize.h"
#include "runtime/data/Summary.h"
#include "tools/tcc-run/Json.h"
#include "tools/tcc-run/Options.h"
#include "tools/tcc-run/Session.h"

#include <cstdio>
#include <iostream>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;
using nlohmann::ordered_json;

static ordered_json describe(images::Size size) {
  return {size.width, size.height};
}

static ordered_json describe(const DataSummary &found) {
  ordered_json fields = ordered_json::array();
  for (const FieldSummary &field : found.fields) {
    fields.push_back({{"name", field.name},
                      {"kind", field.kind},
                      {"count", field.count},
                      {"bytes", field.bytes}});
    if (field.histogram.empty())
      continue;
    fields.back()["least_bytes"] = field.least;
    fields.back()["most_bytes"] = field.most;
    fields.back()["histogram"] = field.histogram;
    if (field.smallest) {
      fields.back()["least_pixels"] = describe(*field.smallest);
      fields.back()["most_pixels"] = describe(*field.largest);
    }
  }
  ordered_json row = {{"source", found.source}, {"fields", fields}};
  if (found.lookedAt == 0)
    return row;
  row["samples"] = found.samples;
  row["looked_at"] = found.lookedAt;
  row["damaged"] = found.damaged;
  row["problems"] = found.problems;
  return row;
}

static void print(const DataSummary &found) {
  std::cout << found.source;
  if (found.lookedAt > 0)
    std::cout << ": " << found.samples << " samples";
  if (found.lookedAt < found.samples)
    std::cout << ", of which " << found.lookedAt << " were looked at";
  std::cout << '\n';
  for (const FieldSummary &field : found.fields) {
    std::cout << "  " << field.name << ": " << field.kind << ", " << field.count
              << ", " << field.bytes << " bytes";
    if (field.count > 0 && !field.histogram.empty())
      std::cout << ", " << field.least << " to " << field.most << " each";
    if (field.smallest)
      std::cout << ", " << field.smallest->width << "x"
                << field.smallest->height << " to " << field.largest->width
                << "x" << field.largest->height << " pixels";
    std::cout << '\n';
  }
  if (found.damaged > 0)
    std::cout << "  damaged: " << found.damaged << '\n';
  for (const std::string &problem : found.problems)
    std::cout << "    " << problem << '\n';
}

static Status showAll(const DataPlan &plan, bool readsAll, bool json) {
  ordered_json rows = ordered_json::array();
  int64_t damaged = 0;
  for (const std::string &source : plan.sources) {
    auto found = summarize(source, readsAll);
    if (!found.ok())
      return found.takeStatus();
    damaged += found->damaged;
    if (json)
      rows.push_back(describe(*found));
    else
      print(*found);
  }
  if (json)
    printJson({{"schema_version", 1}, {"sources", rows}});
  if (damaged == 0)
    return Status();
  return makeError(Code::BadData, damaged, " samples are damaged");
}

static Status indexAll(const DataPlan &plan) {
  for (const std::string &source : plan.sources) {
    auto written = writeIndices(source);
    if (!written.ok())
      return written.takeStatus();
    for (const std::string &path : *written)
      std::cout << path << '\n';
  }
  return Status();
}

/// The plan without what it says of other inputs.
static DataPlan restrictTo(const std::string &input, DataPlan plan) {
  auto restrict = [&](auto &named) {
    std::erase_if(named,
                  [&](const auto &entry) { return entry.first != input; });
  };
  restrict(plan.fields);
  restrict(plan.classes);
  restrict(plan.train);
  restrict(plan.pads);
  plan.eval.clear();
  plan.weights.clear();
  plan.balance.clear();
  return plan;
}

/// How many numbers samples have for an input. Damaged ones are left out where
/// the plan skips them.
static Result<Lengths> measure(const DataPlan &whole,
                               const std::string &input) {
  constexpr int64_t kLongest = int64_t(1) << 40, kDamaged = -1;
  DataPlan plan = restrictTo(input, whole);
  BatchTensor tensor = {input, DType::i64, {1, kLongest}};
  auto source = openData(plan, DataPhase::train, std::span(&tensor, 1),
                         /*seed=*/0, std::make_shared<SkippedSamples>());
  if (!source.ok())
    return source.takeStatus();
  std::vector<int64_t> counts(size_t((*source)->sampleCount()), kDamaged);
  auto take = [&](int64_t number, const SampleRoom &needed) {
    counts[size_t(number)] = int64_t(needed[0] / sizeof(int64_t));
    return Status();
  };
  if (Status status = lookAtAll(**source, plan.skipsBad, take); !status.ok())
    return status;
  Lengths lengths;
  for (int64_t count : counts)
    if (count != kDamaged)
      ++lengths[count];
  return lengths;
}

/// Samples of a size in a batch of about `numbers` numbers; at least 1.
static int64_t batchOf(int64_t size, int numbers) {
  return std::max<int64_t>(numbers / size, 1);
}

static void print(const std::vector<BucketSize> &sizes, double padding,
                  int numbers) {
  std::printf("padding %.1f %% of what is computed\n", 100 * padding);
  std::string list, batches;
  for (const BucketSize &size : sizes) {
    list += concat(list.empty() ? "" : ",", size.size);
    batches += concat(batches.empty() ? "" : ",", batchOf(size.size, numbers));
  }
  std::printf("sizes %s\n", list.c_str());
  if (numbers)
    std::printf("batches %s\n", batches.c_str());
}

/// Says which sizes pad the samples least.
static Status chooseSizes(const DataPlan &plan,
                          const DataCommandOptions &options) {
  if (options.input.empty() || options.count == 0)
    return Status(Code::Usage, "data sizes needs --input and --count");
  auto lengths = measure(plan, options.input);
  if (!lengths.ok())
    return lengths.takeStatus();
  if (lengths->empty())
    return Status(Code::BadData, "there are no samples");
  auto sizes =
      runtime::chooseSizes(*lengths, size_t(options.count), options.multiple);
  double padding = paddingOf(*lengths, sizes);
  if (!options.json) {
    print(sizes, padding, options.numbers);
    return Status();
  }
  ordered_json rows = ordered_json::array();
  for (const BucketSize &size : sizes) {
    rows.push_back({{"size", size.size}, {"samples", size.samples}});
    if (options.numbers)
      rows.back()["batch"] = batchOf(size.size, options.numbers);
  }
  printJson({{"schema_version", 1},
             {"padding", padding},
             {"sizes", std::move(rows)}});
  return Status();
}

int tools::dataCommand(const DataCommandOptions &options) {
  DataPlan plan;
  Status status = plan.use(options.data);
  if (status.ok())
    status = options.action == "index" ? indexAll(plan)
             : options.action == "sizes"
                 ? chooseSizes(plan, options)
                 : showAll(plan, options.action == "check", options.json);
  return report(status);
}
