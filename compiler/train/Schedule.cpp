#include "compiler/train/Schedule.h"

#include <numbers>

using namespace tcc::train;
using namespace tcc::graph;

static Expr min(Expr x, Expr y) { return x.make<MinOp>(y); }
static Expr max(Expr x, double y) { return x.make<MaxOp>(x.like(y)); }
static Expr pow(Expr x, Expr y) { return x.make<PowOp>(y); }
static Expr operator<=(Expr x, Expr y) {
  return compare(CompareKind::le, x, y);
}

/// 1 at 0, 0 at 1, as half a wave.
static Expr getCosine(Expr part) {
  return (1.0 + cos(std::numbers::pi * part)) / 2.0;
}

namespace {

/// The learning rate after `step` updates, of which warm-up is no part.
struct Decay {
  const Settings &settings;
  Expr lr, step, total;

  /// The share of the steps that is over, at most 1.
  Expr getPart() const { return min(step, total) / max(total, 1.0); }
  Expr cosine() const {
    Expr last = settings.get("schedule.eta_min");
    return last + (lr - last) * getCosine(getPart());
  }
  Expr linear() const {
    Expr last = settings.get("schedule.eta_min");
    return lr + (last - lr) * getPart();
  }
  Expr steps() const {
    Expr size = max(settings.get("schedule.step_size"), 1.0);
    return lr * pow(settings.get("schedule.gamma"), floor(step / size));
  }
};

/// One-cycle: from `first` to `peak` and down to `last`, in two or three
/// phases.
class OneCycle {
public:
  OneCycle(const Settings &settings, Expr step);

  Expr getLr() const;
  Expr getMomentum() const;

private:
  /// The value of the phase that the step is in.
  Expr choose(Expr rise, Expr second, Expr third) const {
    return select(isRise, rise, select(isSecond, second, third));
  }
  Expr anneal(Expr from, Expr to) const;

  const Settings &settings;
  Expr hasThree, isRise, isSecond;
  Expr part; ///< of the phase that is over
};

} // namespace

OneCycle::OneCycle(const Settings &settings, Expr step) : settings(settings) {
  Expr total = settings.get("schedule.total_steps");
  Expr rise = settings.get("schedule.pct_start") * total;
  Expr riseEnd = rise - 1.0, end = total - 1.0;
  hasThree = settings.is("schedule.three_phase", true);
  Expr secondEnd = select(hasThree, 2.0 * rise - 2.0, end);
  step = min(step, end);
  isRise = step <= riseEnd;
  isSecond = step <= secondEnd;
  Expr from = choose(step.like(0), riseEnd, secondEnd);
  Expr length = choose(riseEnd, secondEnd, end) - from;
  part = select(length > 0.0, (step - from) / length, 1.0);
}

Expr OneCycle::anneal(Expr from, Expr to) const {
  Expr linear = (to - from) * part + from;
  Expr wave = to + (from - to) * getCosine(part);
  return select(settings.is("schedule.anneal", AnnealKind::Linear), linear,
                wave);
}

Expr OneCycle::getLr() const {
  Expr peak = settings.get("schedule.max_lr");
  Expr first = peak / settings.get("schedule.div_factor");
  Expr last = first / settings.get("schedule.final_div_factor");
  return anneal(choose(first, peak, first),
                choose(peak, select(hasThree, first, last), last));
}

Expr OneCycle::getMomentum() const {
  Expr low = settings.get("schedule.base_momentum");
  Expr high = settings.get("schedule.max_momentum");
  return anneal(choose(high, low, high), choose(low, high, high));
}

Rates tcc::train::emitSchedule(const Settings &settings, Expr iteration,
                               Expr updates) {
  auto is = [&](ScheduleKind kind) {
    return settings.is("schedule.kind", kind);
  };
  Expr step =
      select(settings.is("schedule.on_skip", OnSkip::Hold), updates, iteration);
  Expr lr = settings.get("lr"), warmup = settings.get("schedule.warmup_steps");
  Expr total = settings.get("schedule.total_steps");
  Decay decay{settings, lr, step - warmup, total - warmup};
  Expr decayed = select(is(ScheduleKind::Cosine), decay.cosine(), lr);
  decayed = select(is(ScheduleKind::Linear), decay.linear(), decayed);
  decayed = select(is(ScheduleKind::Step), decay.steps(), decayed);
  Expr isWarm = compare(CompareKind::ge, step, warmup);
  Expr warmed = select(isWarm, decayed, lr * (step + 1.0) / warmup);
  OneCycle cycle(settings, step);
  Expr cycles = is(ScheduleKind::OneCycle);
  return {select(cycles, cycle.getLr(), warmed), cycle.getMomentum(), cycles};
}
