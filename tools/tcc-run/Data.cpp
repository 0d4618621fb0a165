#include "runtime/data/DataPlan.h"
#include "runtime/data/Summary.h"
#include "tools/tcc-run/Json.h"
#include "tools/tcc-run/Options.h"
#include "tools/tcc-run/Session.h"

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

int tools::dataCommand(const DataCommandOptions &options) {
  DataPlan plan;
  Status status = plan.use(options.data);
  if (status.ok())
    status = options.action == "index"
                 ? indexAll(plan)
                 : showAll(plan, options.action == "check", options.json);
  return report(status);
}
