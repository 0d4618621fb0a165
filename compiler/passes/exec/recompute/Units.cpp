#include "compiler/passes/exec/recompute/Units.h"

#include "compiler/passes/exec/memory/LiveRanges.h"
#include "compiler/passes/graph/fusion/Region.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using tcc::graph::KernelKind;

namespace tcc::exec {

namespace {

/// Some ops of a computation, in its order, and what they read from outside:
/// arguments, and results that others compute.
struct Slice {
  SmallVector<Operation *> members;
  llvm::SetVector<Value> inputs;
};

/// Makes the units of one launch.
class UnitFinder {
public:
  UnitFinder(Trace &trace, CommandId launch, fusion::CostModel &model);

  void run(llvm::function_ref<CommandId(Value root)> findChange);

private:
  using Results = SmallVector<unsigned>;

  std::optional<Slice> getSlice(ArrayRef<unsigned> results, bool hasLoops,
                                ArrayRef<unsigned> stops) const;
  void findBases();
  bool addSlice(ArrayRef<unsigned> results, ArrayRef<unsigned> stops,
                KernelKind kind);
  void addWhole();
  void addInput(Unit &unit, Value inner);
  void addOutputs(Unit &unit, ArrayRef<unsigned> results);

  Value getYielded(unsigned result) const {
    return fusion::getSource(body.getTerminator()->getOperand(result));
  }
  Results getAllResults() const {
    return llvm::to_vector(
        llvm::seq<unsigned>(0, body.getTerminator()->getNumOperands()));
  }

  Trace &trace;
  CommandId id;
  LaunchOp launch;
  graph::FusedOp fused;
  Block &body;
  fusion::CostModel &model;
  llvm::DenseMap<Value, ValueId> scratch; ///< what the launch uses
  Results bases, derived;
};

} // namespace

UnitFinder::UnitFinder(Trace &trace, CommandId id, fusion::CostModel &model)
    : trace(trace), id(id), launch(cast<LaunchOp>(trace.commands[id].op)),
      fused(trace.commands[id].getComputation()), body(fused.getBody().front()),
      model(model) {
  const TracedCommand &command = trace.commands[id];
  for (const auto *list : {&command.reads, &command.writes})
    for (ValueId value : *list)
      scratch[trace.values[value].buffer] = value;
}

/// The ops that lead to `results` from arguments and the results `stops`; ops
/// with loops of their own only if `hasLoops`.
std::optional<Slice> UnitFinder::getSlice(ArrayRef<unsigned> results,
                                          bool hasLoops,
                                          ArrayRef<unsigned> stops) const {
  llvm::DenseSet<Value> known;
  for (unsigned stop : stops)
    known.insert(getYielded(stop));
  Slice slice;
  llvm::SetVector<Operation *> reached;
  for (unsigned result : results)
    reached.insert(getYielded(result).getDefiningOp());
  for (unsigned i = 0; i < reached.size(); ++i) {
    if (!hasLoops && isa<graph::KernelOpInterface>(reached[i]))
      return std::nullopt;
    for (Value operand : reached[i]->getOperands()) {
      Value source = fusion::getSource(operand);
      if (fusion::getSplat(source))
        continue;
      if (isa<BlockArgument>(source) || known.contains(source))
        slice.inputs.insert(source);
      else
        reached.insert(source.getDefiningOp());
    }
  }
  for (Operation &op : body)
    if (reached.contains(&op))
      slice.members.push_back(&op);
  return slice;
}

/// Derived results are pointwise in arguments and the base results.
void UnitFinder::findBases() {
  Results order = getAllResults();
  llvm::sort(order, [&](unsigned a, unsigned b) {
    Operation *first = getYielded(a).getDefiningOp();
    Operation *second = getYielded(b).getDefiningOp();
    return first == second ? a < b : first->isBeforeInBlock(second);
  });
  for (unsigned result : order)
    (getSlice(result, /*hasLoops=*/false, bases) ? derived : bases)
        .push_back(result);
}

void UnitFinder::addInput(Unit &unit, Value inner) {
  Unit::Input &input = unit.inputs.emplace_back();
  input.inner = inner;
  if (auto argument = dyn_cast<BlockArgument>(inner))
    input.buffer = launch.getInputs()[argument.getArgNumber()];
  else
    for (unsigned base : bases)
      if (getYielded(base) == inner)
        input.buffer = launch.getOutputs()[base];
  auto it = scratch.find(getRoot(input.buffer));
  if (it != scratch.end())
    input.value = it->second;
}

void UnitFinder::addOutputs(Unit &unit, ArrayRef<unsigned> results) {
  for (unsigned result : results) {
    BufferOp root = getRoot(launch.getOutputs()[result]);
    auto it = scratch.find(root);
    bool isValue = it != scratch.end() && trace.values[it->second].writer == id;
    unit.outputs.push_back(
        {isValue ? it->second : kNone, result, getArenaBytes(root)});
    if (isValue)
      trace.values[it->second].unit = trace.units.size() - 1;
  }
}

/// False if the ops are no kernel of `kind`.
bool UnitFinder::addSlice(ArrayRef<unsigned> results, ArrayRef<unsigned> stops,
                          KernelKind kind) {
  bool hasLoops = kind != KernelKind::pointwise;
  std::optional<Slice> slice = getSlice(results, hasLoops, stops);
  SmallVector<Value> yielded;
  for (unsigned result : results)
    yielded.push_back(getYielded(result));
  if (!slice)
    return false;
  fusion::Analysis analysis =
      fusion::analyzeRegion(slice->members, yielded, model);
  if (!analysis.region || analysis.region->kind != kind)
    return false;
  Unit &unit = trace.units.emplace_back();
  unit.launch = id;
  unit.isWhole = false;
  unit.members = slice->members;
  unit.microseconds =
      fusion::getMicroseconds(analysis.region->work, model.getMachine());
  for (Value inner : slice->inputs)
    addInput(unit, inner);
  addOutputs(unit, results);
  return true;
}

void UnitFinder::addWhole() {
  Unit &unit = trace.units.emplace_back();
  unit.launch = id;
  unit.microseconds = trace.commands[id].microseconds;
  for (BlockArgument argument : body.getArguments())
    addInput(unit, argument);
  addOutputs(unit, getAllResults());
}

void UnitFinder::run(llvm::function_ref<CommandId(Value root)> findChange) {
  fusion::Body parts = fusion::getBody(fused);
  fusion::Analysis analysis =
      fusion::analyzeRegion(parts.members, parts.results, model);
  if (!analysis.region)
    return;
  trace.commands[id].microseconds =
      fusion::getMicroseconds(analysis.region->work, model.getMachine());
  findBases();
  size_t first = trace.units.size();
  bool isNarrow = model.getTarget().getCapabilities().sumsInChains &&
                  fused.getKind() == KernelKind::contraction &&
                  !derived.empty() &&
                  addSlice(bases, {}, KernelKind::contraction);
  if (!isNarrow)
    addWhole();
  if (parts.results.size() > 1)
    for (unsigned result : derived)
      addSlice(result, bases, KernelKind::pointwise);
  for (size_t i = first; i < trace.units.size(); ++i)
    for (const Unit::Input &input : trace.units[i].inputs)
      trace.units[i].validUntil = std::min(trace.units[i].validUntil,
                                           findChange(getRoot(input.buffer)));
}

namespace {

/// Which commands write a buffer, by its root.
using Writes = llvm::DenseMap<Value, SmallVector<CommandId>>;

} // namespace

static Writes collectWrites(const Trace &trace) {
  Writes writes;
  for (auto [id, command] : llvm::enumerate(trace.commands))
    command.op->walk([&, id = id](CommandOpInterface nested) {
      for (Value buffer : nested.getWrites())
        writes[getRoot(buffer)].push_back(id);
    });
  return writes;
}

void findUnits(Trace &trace, fusion::CostModels &models) {
  Writes writes = collectWrites(trace);
  for (CommandId id = 0; id < trace.commands.size(); ++id) {
    auto launch = dyn_cast<LaunchOp>(trace.commands[id].op);
    if (!launch)
      continue;
    auto isRead = [&](Value root) {
      return llvm::any_of(launch.getInputs(), [&](Value input) {
        return getRoot(input).getResult() == root;
      });
    };
    // The launch itself counts if it writes over what it reads.
    auto findChange = [&](Value root) {
      for (CommandId write : writes.lookup(root))
        if (write > id || (write == id && isRead(root)))
          return write;
      return kNone;
    };
    const Target &target = getTarget(trace.commands[id].kernel);
    UnitFinder(trace, id, models.get(target)).run(findChange);
  }
}

} // namespace tcc::exec
