#include "compiler/pipeline/Summary.h"

#include "compiler/passes/exec/LaunchCost.h"
#include "compiler/passes/exec/memory/LiveRanges.h"
#include "compiler/pipeline/Budget.h"
#include "dialects/graph/NodeNames.h"
#include "dialects/graph/Phases.h"
#include "dialects/graph/Shape.h"
#include "dialects/graph/Variables.h"
#include "runtime/package/Names.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tcc {

/// The launches that write buffers first.
static llvm::DenseMap<Operation *, exec::LaunchOp>
getWriters(exec::EntryOp entry) {
  llvm::DenseMap<Operation *, exec::LaunchOp> writers;
  entry.walk<WalkOrder::PreOrder>([&](exec::LaunchOp launch) {
    for (Value output : launch.getOutputs())
      writers.try_emplace(exec::getRoot(output), launch);
  });
  return writers;
}

static ArenaUse getUse(exec::EntryOp entry) {
  ArenaUse use{entry.getSymName().str(),
               int64_t(entry.getScratchBytes().value_or(0)),
               0,
               {}};
  llvm::DenseMap<Operation *, exec::LaunchOp> writers = getWriters(entry);
  exec::LiveRanges::Scratch scratch = exec::LiveRanges(entry).getScratch();
  for (auto [buffer, range] : llvm::zip(scratch.buffers, scratch.allocations)) {
    exec::LaunchOp writer = writers.lookup(buffer);
    use.tensors.push_back(
        {writer ? writer.getNode().str() : "",
         writer ? getOrigin(writer.getLoc()).module.str() : "", range.bytes,
         range.begin, range.end});
    use.positions = std::max(use.positions, range.end + 1);
  }
  return use;
}

std::vector<ArenaUse> getArenaUses(ModuleOp module) {
  std::vector<ArenaUse> uses;
  for (auto entry : module.getOps<exec::EntryOp>())
    if (isRun(entry, /*hasRanks=*/false) || isRun(entry, /*hasRanks=*/true))
      uses.push_back(getUse(entry));
  return uses;
}

/// The bytes of `parts` of as many elements as the op counts.
template <typename Start>
static MessageUse describe(Start start, int64_t parts) {
  int64_t count = graph::evaluate(start.getCount().getResult(0), {}) * parts;
  int64_t bits = start.getType().getIntOrFloatBitWidth();
  return {start.getNode().value_or("").str(),
          count * int64_t(llvm::divideCeil(bits, 8)), 0};
}

/// The message that a command starts, if it is one of `ranks` in parts or of
/// any number.
static std::optional<MessageUse> findMessage(Operation *command,
                                             int64_t ranks) {
  return llvm::TypeSwitch<Operation *, std::optional<MessageUse>>(command)
      .Case([](exec::StartAllReduceOp start) { return describe(start, 1); })
      .Case<exec::StartReduceScatterOp, exec::StartAllGatherOp>(
          [&](auto start) { return describe(start, ranks); })
      .Default([](Operation *) { return std::nullopt; });
}

std::vector<MessageUse> getMessages(ModuleOp module) {
  std::vector<MessageUse> messages;
  auto find = [&](format::EntryKind kind) {
    return module.lookupSymbol<exec::EntryOp>(format::nameOf(kind));
  };
  exec::EntryOp entry = find(format::EntryKind::reduce_step);
  if (!entry)
    entry = find(format::EntryKind::reduce_apply);
  if (!entry)
    return messages;
  SymbolTable kernels(module);
  SmallVector<int64_t> slots = exec::getLargestSizes(entry);
  int64_t ranks = std::max<int64_t>(graph::getRanks(module), 1);
  llvm::DenseMap<Value, size_t> started;
  for (Operation &command : entry.getBody().front()) {
    if (auto message = findMessage(&command, ranks)) {
      auto start = cast<exec::TokenOpInterface>(command);
      started[start.getToken()] = messages.size();
      messages.push_back(std::move(*message));
    } else if (auto wait = dyn_cast<exec::WaitOp>(command)) {
      started.erase(wait.getToken());
    }
    auto launch = dyn_cast<exec::LaunchOp>(command);
    if (!launch)
      continue;
    auto kernel = kernels.lookup<exec::KernelOp>(launch.getKernel());
    for (auto [token, index] : started)
      messages[index].hidingMicroseconds +=
          exec::getMicroseconds(launch, kernel, slots);
  }
  return messages;
}

static LaunchUse describe(exec::LaunchOp launch, exec::KernelOp kernel,
                          ArrayRef<int64_t> slots) {
  auto count = [&](std::optional<AffineMap> amount) {
    return amount ? graph::evaluate(amount->getResult(0), slots) : 0;
  };
  NodeOrigin origin = getOrigin(launch.getLoc());
  fusion::Times times = exec::getTimes(launch, kernel, slots);
  auto phase = getPhase(launch.getLoc()).value_or(format::Phase::forward);
  return {launch.getNode().str(),
          origin.op.str(),
          origin.module.str(),
          format::nameOf(phase),
          count(launch.getFlops()),
          count(launch.getBytes()),
          times.launch,
          times.memory,
          times.arithmetic};
}

void summarize(ModuleOp module, CompileReport &report) {
  llvm::SmallVector<int64_t> maxima;
  for (graph::SymbolAttr symbol : graph::getSymbols(module))
    maxima.push_back(symbol.getMax());
  auto kernels = module.getOps<exec::KernelOp>();
  report.kernels = std::distance(kernels.begin(), kernels.end());
  mlir::SymbolTable symbols(module);
  format::EntryKind step = getStep(module);
  for (exec::EntryOp entry : module.getOps<exec::EntryOp>()) {
    // The arena is shared. Work is that of one run, or of one training step.
    if (!isRun(entry, /*hasRanks=*/false))
      continue;
    report.arenaBytes = std::max<int64_t>(report.arenaBytes,
                                          entry.getScratchBytes().value_or(0));
    report.arenaBoundBytes = std::max<int64_t>(
        report.arenaBoundBytes, entry.getScratchBound().value_or(0));
    if (entry.getSymName() != format::nameOf(format::EntryKind::main) &&
        entry.getSymName() != format::nameOf(step))
      continue;
    llvm::SmallVector<int64_t> slots = maxima;
    slots.resize(entry.getSlots(), 1);
    entry.walk([&](exec::LaunchOp launch) {
      auto kernel = symbols.lookup<exec::KernelOp>(launch.getKernel());
      LaunchUse use = describe(launch, kernel, slots);
      ++report.launches;
      report.libraryCalls += kernel.getLibrary().has_value();
      report.flops += use.flops;
      report.bytes += use.bytes;
      report.launchUses.push_back(std::move(use));
    });
  }
}

} // namespace tcc
