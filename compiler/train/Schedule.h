//===- Schedule.h - Learning rate and momentum of an update -----*- C++ -*-===//
#ifndef TCC_COMPILER_TRAIN_SCHEDULE_H
#define TCC_COMPILER_TRAIN_SCHEDULE_H

#include "compiler/train/Settings.h"

namespace tcc::train {

/// Scalars of f64.
struct Rates {
  graph::Expr lr;
  /// What one_cycle makes of sgd's momentum or the first of betas, and whether
  /// the schedule is that (i1).
  graph::Expr momentum, cyclesMomentum;

  /// `momentum` where the schedule cycles it, else `constant`.
  graph::Expr getMomentum(graph::Expr constant) const {
    return select(cyclesMomentum, momentum, constant);
  }
};

/// The values of all schedules in closed form, and the one that the settings
/// choose: each equals what PyTorch's scheduler of that kind gives after as
/// many calls of step() as there were updates. Beyond its end a schedule stays.
Rates emitSchedule(const Settings &settings, graph::Expr iteration,
                   graph::Expr updates);

} // namespace tcc::train

#endif // TCC_COMPILER_TRAIN_SCHEDULE_H
