#include "tools/tcc-run/report/RunLog.h"

#include "runtime/package/Names.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;
using nlohmann::ordered_json;

/// Points of a curve.
static constexpr size_t kMostPoints = 500;

namespace {

struct NumberKey {
  const char *name;
  double LoggedUpdate::*value;
};

struct TruthKey {
  const char *name;
  bool LoggedUpdate::*value;
};

} // namespace

static constexpr NumberKey kNumbers[] = {
    {"loss", &LoggedUpdate::loss},
    {"lr", &LoggedUpdate::rate},
    {"grad_norm", &LoggedUpdate::gradNorm},
    {"loss_scale", &LoggedUpdate::lossScale},
    {"samples_per_s", &LoggedUpdate::samplesPerSecond},
    {"tokens_per_s", &LoggedUpdate::tokensPerSecond},
    {"mfu", &LoggedUpdate::mfu},
    {"update_s", &LoggedUpdate::seconds},
    {"stall_s", &LoggedUpdate::stall},
    {"data_wait_s", &LoggedUpdate::dataWait},
    {"exposed_communication_s", &LoggedUpdate::exposed},
    {"resident_bytes", &LoggedUpdate::residentBytes}};
static constexpr TruthKey kTruths[] = {{"skipped", &LoggedUpdate::isSkipped},
                                       {"spike", &LoggedUpdate::isSpike}};
static constexpr char kStep[] = "step";
static const char *const kEvaluation = format::nameOf(format::EntryKind::eval);

//===----------------------------------------------------------------------===//
// Lines
//===----------------------------------------------------------------------===//

/// Says what is wrong with a line; nothing if it is whole.
static std::string check(const ordered_json &row) {
  if (row.is_discarded())
    return "no JSON, expected an object";
  if (!row.is_object())
    return concat(row.type_name(), ", expected an object");
  auto step = row.find(kStep);
  if (step == row.end() || !step->is_number_integer())
    return concat(step == row.end() ? "no 'step'" : step->type_name(),
                  ", expected the whole number 'step'");
  for (const NumberKey &key : kNumbers)
    if (auto it = row.find(key.name);
        it != row.end() && !it->is_number() && !it->is_null())
      return concat("'", key.name, "' that is ", it->type_name(),
                    ", expected a number or null");
  for (const TruthKey &key : kTruths)
    if (auto it = row.find(key.name); it != row.end() && !it->is_boolean())
      return concat("'", key.name, "' that is ", it->type_name(),
                    ", expected true or false");
  if (auto it = row.find(kEvaluation); it != row.end() && !it->is_object())
    return concat("'", kEvaluation, "' that is ", it->type_name(),
                  ", expected an object");
  return "";
}

/// A line of an evaluation alone adds it to the update that has a line.
static void read(const ordered_json &row, LoggedUpdate &update) {
  bool isUpdate = row.contains(kNumbers[0].name);
  if (isUpdate)
    update = {};
  update.step = row[kStep];
  if (isUpdate) {
    for (const NumberKey &key : kNumbers)
      if (auto it = row.find(key.name); it != row.end() && it->is_number())
        update.*key.value = it->get<double>();
    for (const TruthKey &key : kTruths)
      update.*key.value = row.value(key.name, false);
  }
  if (row.contains(kEvaluation))
    update.evaluation = row[kEvaluation];
}

Result<RunLog> tools::readRunLog(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return makeError(Code::Io, "there is no '", path,
                     "', the log of the run's updates");
  RunLog log;
  std::map<int64_t, LoggedUpdate> updates;
  std::string line, broken;
  for (int64_t number = 1; std::getline(file, line); ++number) {
    auto row = ordered_json::parse(line, nullptr, /*allow_exceptions=*/false);
    std::string problem = file.eof() ? "no end of the line" : check(row);
    if (!problem.empty()) {
      if (broken.empty())
        broken = concat("line ", number, " has ", problem);
      continue;
    }
    // Only what is behind the last whole line was half written.
    if (!broken.empty())
      return makeError(Code::BadData, "'", path, "' ", broken);
    log.redone += row.contains("redone") && row.contains(kNumbers[0].name);
    read(row, updates[row[kStep]]);
  }
  if (file.bad())
    return makeError(Code::Io, "cannot read '", path, "'");
  log.isTorn = !broken.empty();
  log.updates.reserve(updates.size());
  for (auto &[step, update] : updates)
    log.updates.push_back(std::move(update));
  return log;
}

//===----------------------------------------------------------------------===//
// Curves
//===----------------------------------------------------------------------===//

Curve tools::thin(const RunLog &log, double LoggedUpdate::*value) {
  std::vector<const LoggedUpdate *> known;
  for (const LoggedUpdate &update : log.updates)
    if (std::isfinite(update.*value))
      known.push_back(&update);
  Curve curve;
  curve.width =
      std::max<size_t>(1, (known.size() + kMostPoints - 1) / kMostPoints);
  for (size_t i = 0; i < known.size(); i += curve.width) {
    size_t end = std::min(known.size(), i + curve.width);
    double sum = 0, low = known[i]->*value, high = low;
    for (size_t k = i; k < end; ++k) {
      sum += known[k]->*value;
      low = std::min(low, known[k]->*value);
      high = std::max(high, known[k]->*value);
    }
    curve.x.push_back(double(known[(i + end - 1) / 2]->step));
    curve.mean.push_back(sum / double(end - i));
    curve.low.push_back(low);
    curve.high.push_back(high);
  }
  return curve;
}
