#include "tools/tcc-run/FindRate.h"

#include "runtime/base/OutputFile.h"
#include "tools/tcc-run/Json.h"
#include "tools/tcc-run/Progress.h"
#include "tools/tcc-run/RateCurve.h"

#include <array>
#include <filesystem>
#include <iomanip>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

/// One update at a time, as each has a rate of its own.
static Status tryRates(TrainingSession &session, Updates &updates, bool quiet,
                       RateCurve &curve) {
  Settings settings = session.settings();
  for (auto [key, value] : {std::pair("schedule.kind", "constant"),
                            std::pair("schedule.warmup_steps", "0")})
    if (Status status = settings.set(key, value); !status.ok())
      return status;
  int64_t first = session.stepCount();
  ProgressLine line(first, first + curve.size(), quiet);
  for (int64_t i = 0; i < curve.size() && !curve.isOver(); ++i) {
    double rate = curve.getRate(i);
    if (Status status = settings.set("lr", std::span(&rate, 1)); !status.ok())
      return status;
    Status status = updates.make(first + i + 1);
    if (!status.ok() && status.code() != Code::Numerics)
      return status;
    curve.add(session.metrics().loss);
    if (auto now = ProgressLine::Clock::now(); line.isDue(now))
      line.show(session.metrics(), {}, std::nullopt, now);
    if (!status.ok())
      break;
  }
  return Status();
}

static nlohmann::ordered_json describe(const RateCurve &curve,
                                       const std::string &picture) {
  auto orNull = [](std::optional<double> rate) {
    return rate ? nlohmann::ordered_json(*rate) : nlohmann::ordered_json();
  };
  nlohmann::ordered_json document = {
      {"schema_version", 1},
      {"steepest", orNull(curve.findSteepest())},
      {"tenth_of_lowest", orNull(curve.findTenth())},
      {"picture", picture},
      {"points", nlohmann::json::array()}};
  for (const RatePoint &point : curve.getPoints())
    document["points"].push_back({{"lr", point.rate}, {"loss", point.loss}});
  return document;
}

static Status writeCurve(const RateCurve &curve, const TrainOptions &options) {
  std::error_code error;
  if (!options.logDir.empty())
    std::filesystem::create_directories(options.logDir, error);
  std::string picture =
      (options.logDir.empty() ? "" : options.logDir + "/") + "find-lr.svg";
  auto file = OutputFile::create(picture);
  if (!file.ok())
    return file.takeStatus();
  file->write(curve.draw());
  if (Status status = file->commit(); !status.ok())
    return status;
  if (options.running.json) {
    printJson(describe(curve, picture));
    return Status();
  }
  auto steepest = curve.findSteepest(), tenth = curve.findTenth();
  std::cout << std::setprecision(2)
            << (steepest || tenth ? "the loss " : "the loss falls at no rate");
  if (steepest)
    std::cout << "falls fastest at lr = " << *steepest;
  if (tenth)
    std::cout << (steepest ? " and " : "")
              << "is lowest at ten times lr = " << *tenth;
  std::cout << "; " << picture << '\n';
  return Status();
}

Status tools::findRate(TrainingSession &session, Updates &updates,
                       const TrainOptions &options) {
  constexpr double kFirst = 1e-7, kLast = 10;
  constexpr int64_t kUpdates = 100;
  RateCurve curve(
      kFirst, kLast,
      std::max<int64_t>(options.steps ? options.steps : kUpdates, 2));
  Status status = tryRates(session, updates, options.running.quiet, curve);
  return status.ok() && session.rank() == 0 ? writeCurve(curve, options)
                                            : std::move(status);
}
