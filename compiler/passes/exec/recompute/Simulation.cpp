#include "compiler/passes/exec/recompute/Simulation.h"

#include "compiler/passes/exec/memory/LiveRanges.h"

using namespace mlir;

namespace tcc::exec {

Simulation::Simulation(const Trace &trace) : trace(trace) {
  constexpr size_t kWindow = 48, kParts = 8;
  window = std::min(kWindow, trace.commands.size() / kParts);
}

InstanceId Simulation::addInstance(int64_t bytes) {
  int64_t step = steps.size();
  instances.push_back({step, step, bytes});
  return instances.size() - 1;
}

/// True for a launch none of whose results is read before its gap begins: it
/// runs when one is wanted.
bool Simulation::isSkipped(CommandId id) const {
  const TracedCommand &command = trace.commands[id];
  return command.isMovable && llvm::all_of(command.writes, [&](ValueId value) {
           return choice->isDropped[value] &&
                  trace.values[value].gapBegin == id;
         });
}

/// What is written otherwise than by one launch is there from its first use.
void Simulation::use(ValueId value, Step &step) {
  if (residentUntil[value] < 0) {
    current[value] = addInstance(trace.values[value].bytes);
    residentUntil[value] = kNone;
  }
  instances[current[value]].end = steps.size();
  step.reads.push_back(current[value]);
}

/// Decides until when the value, which is there now, may be used there. Its
/// memory is needed only until it is used last.
void Simulation::settle(ValueId value, CommandId now) {
  const TracedValue &traced = trace.values[value];
  CommandId last = std::max(now, traced.uses.back()) + window;
  if (traced.unit == kNone)
    residentUntil[value] = kNone;
  else if (!choice->isDropped[value] || now >= traced.gapEnd)
    residentUntil[value] = last;
  else if (now <= traced.gapBegin)
    residentUntil[value] = traced.gapBegin;
  else if (choice->holds || traced.gapEnd - now <= window)
    residentUntil[value] = last;
  else
    residentUntil[value] = now + window;
}

bool Simulation::runUnit(unsigned id, CommandId now) {
  const Unit &unit = trace.units[id];
  if (now > unit.validUntil)
    return false;
  for (const Unit::Input &input : unit.inputs)
    if (input.value != kNone && !provide(input.value, now))
      return false;
  Step step{/*isUnit=*/true, id, {}, {}};
  for (const Unit::Input &input : unit.inputs)
    if (input.value != kNone)
      use(input.value, step);
    else
      step.reads.push_back(kNone);
  for (const Unit::Output &output : unit.outputs) {
    step.writes.push_back(addInstance(output.bytes));
    if (output.value == kNone || residentUntil[output.value] >= int64_t(now))
      continue;
    current[output.value] = step.writes.back();
    settle(output.value, now);
  }
  microseconds += unit.microseconds;
  steps.push_back(std::move(step));
  return true;
}

bool Simulation::provide(ValueId value, CommandId now) {
  const TracedValue &traced = trace.values[value];
  if (traced.writer == kNone || residentUntil[value] >= int64_t(now))
    return true;
  return traced.unit != kNone && runUnit(traced.unit, now);
}

bool Simulation::runCommand(CommandId id) {
  const TracedCommand &command = trace.commands[id];
  for (ValueId value : command.reads)
    if (!provide(value, id))
      return false;
  Step step{/*isUnit=*/false, id, {}, {}};
  for (ValueId value : command.reads)
    use(value, step);
  for (ValueId value : command.writes) {
    step.writes.push_back(addInstance(trace.values[value].bytes));
    current[value] = step.writes.back();
    settle(value, id);
  }
  microseconds += command.microseconds;
  steps.push_back(std::move(step));
  return true;
}

/// A launch that writes a result over an input needs the bytes once.
void Simulation::sharePairs(std::vector<int64_t> &inPlace) const {
  for (auto [index, step] : llvm::enumerate(steps)) {
    if (step.isUnit)
      continue;
    const TracedCommand &command = trace.commands[step.id];
    SmallVector<InstanceId> taken;
    for (InPlacePair pair : command.inPlace) {
      InstanceId result = step.writes[llvm::find(command.writes, pair.result) -
                                      command.writes.begin()];
      InstanceId input = step.reads[llvm::find(command.reads, pair.input) -
                                    command.reads.begin()];
      if (instances[input].end != int64_t(index) ||
          llvm::is_contained(taken, input) || llvm::is_contained(taken, result))
        continue;
      taken.append({input, result});
      inPlace[index] += instances[input].bytes;
    }
  }
}

void Simulation::countLive() {
  std::vector<int64_t> inPlace(steps.size());
  sharePairs(inPlace);
  live = exec::countLive(instances, steps.size());
  for (auto [index, step] : llvm::enumerate(steps)) {
    live[index] -= inPlace[index];
    if (!step.isUnit)
      live[index] += trace.commands[step.id].innerBytes;
  }
}

bool Simulation::run(const Choice &newChoice) {
  choice = &newChoice;
  current.assign(trace.values.size(), kNone);
  residentUntil.assign(trace.values.size(), -1);
  steps.clear();
  instances.clear();
  microseconds = 0;
  for (CommandId id = 0; id < trace.commands.size(); ++id)
    if (!isSkipped(id) && !runCommand(id))
      return false;
  countLive();
  return true;
}

int64_t Simulation::getPeak() const {
  return live.empty() ? 0 : *llvm::max_element(live);
}

double Simulation::getExcess(int64_t target) const {
  double excess = 0;
  for (int64_t bytes : live)
    excess += double(std::max<int64_t>(0, bytes - target));
  return excess;
}

} // namespace tcc::exec
