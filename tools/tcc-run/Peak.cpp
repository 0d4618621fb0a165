#include "tools/tcc-run/Peak.h"

#include "runtime/base/CpuFeatures.h"
#include "runtime/train/CheckpointFormat.h"
#include "tools/tcc-run/Roofline.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

/// What products of the session's steps multiply. Numbers of types that the
/// host has no products of are multiplied as f32.
static DType operandsOf(const TrainingSession &session) {
  std::string compute = recipeOf(session).value("precision.compute", "");
  for (DType dtype : {DType::f64, DType::bf16})
    if (compute == traitsOf(dtype).name)
      return dtype;
  return DType::f32;
}

Peak::Peak(TrainingSession &session, int cpus)
    : session(session), cpus(cpus),
      isMeasurable(session.executable().device().isHost() &&
                   hasCpuFeature("avx2") && hasCpuFeature("fma")) {}

std::optional<double> Peak::flops() const {
  constexpr double kSeconds = 0.01;
  if (!isMeasurable || !session.hasStepped())
    return std::nullopt;
  int threads = std::min(session.lastContext().threads(), cpus);
  if (!measured)
    measured = 1e9 * measureProducts(operandsOf(session), threads, kSeconds);
  return measured;
}

std::optional<double> Peak::shareOf(double operations, double seconds) const {
  if (operations <= 0 || seconds <= 0)
    return std::nullopt;
  std::optional<double> most = flops();
  if (!most)
    return std::nullopt;
  return operations / (seconds * *most);
}
