#include "runtime/package/VerifyEntry.h"

#include "runtime/base/Alignment.h"
#include "runtime/package/Commands.h"
#include "runtime/package/DType.h"
#include "runtime/package/Format.h"
#include "runtime/package/LaneOrder.h"
#include "runtime/package/Names.h"
#include "runtime/package/SizeExpr.h"
#include "runtime/package/VariableOffsets.h"
#include "runtime/package/VerifyLibrary.h"

#include <numeric>

using namespace tcc;
using namespace tcc::runtime;
using format::StorageClass;

namespace {

constexpr int kMaxBlockDepth = 32;
constexpr uint32_t kMaxSlots = 1 << 20;

constexpr char kNotOnFirstLane[] = "it is done by the host, on lane 0";
constexpr char kMayBeLeftOut[] = "it is in a branch or loop";
constexpr char kNotInOrder[] = "nothing orders it after the one before";
constexpr char kUnknownGroup[] = "this runtime has one group of ranks, 0";
constexpr char kNotSummed[] = "ranks do not add up elements of its type";
constexpr char kMisaligned[] = "its buffers are not aligned as its elements";
constexpr char kOverlaps[] = "its buffers are parts of one, and not the same";
constexpr char kNoRoom[] = "its buffers do not hold what it moves";

template <typename T> size_t sizeOf(const flatbuffers::Vector<T> *vector) {
  return vector ? vector->size() : 0;
}

std::string_view textOf(const flatbuffers::String *text) {
  return text ? text->string_view() : std::string_view();
}

/// Checks one entry; the first problem is kept in `problem`.
class EntryVerifier {
public:
  EntryVerifier(const format::Program &program, const format::Entry &entry,
                KernelLaunches &launches)
      : program(program), entry(entry), launches(launches) {}

  Status verify();

private:
  bool verifySpace();
  bool verifySignature();
  uint64_t modelBytes(uint32_t index) const;
  bool fitsVariables(const format::Buffer &buffer) const;
  bool verifyFixed(const format::TensorSpec &spec);
  bool verifySpec(const format::TensorSpec &spec, size_t slotCount);
  bool verifyBuffers();
  bool verifyPlace(const format::Buffer &buffer, uint32_t index);
  bool isStateInput(uint32_t input) const;
  bool isStateOutput(uint32_t output) const;
  bool verifyView(const format::Buffer &buffer, uint32_t index);
  struct Visitor;

  bool verifyBlock(const format::Block &block, int depth);
  bool verifyLaunch(const format::Launch &launch);
  bool verifyArguments(const format::Launch &launch);
  bool verifyCandidates(const format::Launch &launch);
  uint64_t alignmentOf(uint32_t buffer) const;
  uint32_t rootOf(uint32_t buffer) const;
  bool verifyCopy(const format::Copy &copy);
  template <Collective Table>
  bool verifyCollective(const Table &collective, int depth, size_t lane,
                        LaneOrder &order);
  template <Collective Table> const char *findProblem(const Table &table) const;
  bool verifySetSize(const format::SetSize &set);
  bool verifyBranch(const format::If &branch, int depth);
  bool verifyLoop(const format::Loop &loop, int depth);
  bool verifyReadSize(const format::ReadSize &read);
  bool verifyLanes();
  bool verifyEvents();
  bool verifyRecord(const format::RecordEvent &record, size_t lane,
                    LaneOrder &order);
  bool verifyWait(const format::WaitEvent &wait, size_t lane, LaneOrder &order);
  bool refuseCommand(const char *kind, const char *reason);

  bool isPrepare() const { return entry.kind() == format::EntryKind::prepare; }
  bool isBuffer(uint32_t index) const {
    return index < sizeOf(entry.buffers());
  }
  /// Only launches see fault buffers, which lie with the workers.
  bool isFaultBuffer(uint32_t index) const {
    return entry.buffers()->Get(index)->storage() == StorageClass::fault;
  }
  /// A buffer with an address and at least `bytes` bytes.
  bool holds(uint32_t index, uint64_t bytes) const {
    return isBuffer(index) && !isFaultBuffer(index) &&
           entry.buffers()->Get(index)->max_bytes() >= bytes;
  }
  bool isOwnSlot(uint32_t slot) const {
    return slot >= sizeOf(program.symbols()) && slot < entry.slot_count();
  }
  /// Whether commands may set it.
  bool isFree(uint32_t slot) const {
    return isOwnSlot(slot) && int64_t(slot) != entry.rank_slot();
  }
  bool isExpr(const format::SizeExpr *expr) const {
    return expr && isWellFormed(*expr, entry.slot_count());
  }
  bool isOptionalExpr(const format::SizeExpr *expr) const {
    return !expr || isExpr(expr);
  }

  template <typename... Parts> bool refuse(const Parts &...parts) {
    problem = concat("entry '", nameOf(entry), "': ", parts...);
    return false;
  }

  const format::Program &program;
  const format::Entry &entry;
  KernelLaunches &launches;
  std::string problem;
  std::vector<bool> isRecorded; ///< of each event
  int64_t commandCount = 0;     ///< commands met so far; errors count from 1
  /// The offsets of all variables, and of their end, in bytes.
  std::optional<std::vector<uint64_t>> variablePlaces;
  /// The collective before: its lane and number there.
  std::optional<std::pair<size_t, uint32_t>> lastCollective;
};

Status EntryVerifier::verify() {
  if (verifySpace() && verifySignature() && verifyBuffers() && verifyLanes() &&
      verifyBlock(*entry.body(), 0) && verifyEvents())
    return Status();
  return Status(Code::BadData, std::move(problem));
}

bool EntryVerifier::verifySpace() {
  bool isDevice = entry.space() == format::MemorySpace::device;
  if (entry.space() != format::MemorySpace::host && (!isDevice || isPrepare()))
    return refuse("it lies in memory unknown to this runtime");
  return !isDevice || entry.worker_scratch_bytes() == 0 ||
         refuse("it has scratch of workers on a device");
}

bool EntryVerifier::verifySpec(const format::TensorSpec &spec,
                               size_t slotCount) {
  if (!isDType(spec.dtype()))
    return refuse("'", spec.name()->string_view(), "' has an unknown dtype");
  for (const format::SizeExpr *dim : *spec.shape())
    if (!isWellFormed(*dim, slotCount))
      return refuse("'", spec.name()->string_view(), "' has a bad dimension");
  return true;
}

/// The fixed value of an input, if there is one, is whole.
bool EntryVerifier::verifyFixed(const format::TensorSpec &spec) {
  if (!spec.fixed())
    return true;
  auto shape = staticShape(spec);
  if (!shape)
    return refuse("'", spec.name()->string_view(),
                  "' is fixed and has no static shape");
  return bytesOf(spec.dtype(), *shape) == spec.fixed()->size() ||
         refuse("'", spec.name()->string_view(), "' is fixed to ",
                spec.fixed()->size(), " bytes, which are not its size");
}

bool EntryVerifier::verifySignature() {
  if (entry.slot_count() < sizeOf(program.symbols()) ||
      entry.slot_count() > kMaxSlots)
    return refuse("bad number of size slots ", entry.slot_count());
  if (entry.rank_slot() != -1 &&
      !isOwnSlot(static_cast<uint32_t>(entry.rank_slot())))
    return refuse("the rank is in no size slot of its own");
  for (const format::TensorSpec *input : *entry.inputs())
    if (!verifySpec(*input, sizeOf(program.symbols())) || !verifyFixed(*input))
      return false;
  for (const format::TensorSpec *output : *entry.outputs())
    if (!verifySpec(*output, entry.slot_count()))
      return false;
  for (size_t i = 0; i < sizeOf(entry.states()); ++i) {
    const format::StatePair *pair = entry.states()->Get(i);
    if (pair->input() >= sizeOf(entry.inputs()) ||
        pair->output() >= sizeOf(entry.outputs()))
      return refuse("state ", i, " has no such input or output");
    const format::TensorSpec *input = entry.inputs()->Get(pair->input());
    const format::TensorSpec *output = entry.outputs()->Get(pair->output());
    if (input->dtype() != output->dtype() ||
        sizeOf(input->shape()) != sizeOf(output->shape()))
      return refuse("state ", i, " changes its type");
    for (size_t j = 0; j < i; ++j)
      if (entry.states()->Get(j)->input() == pair->input() ||
          entry.states()->Get(j)->output() == pair->output())
        return refuse("states ", j, " and ", i, " share an input or output");
  }
  return true;
}

bool EntryVerifier::isStateInput(uint32_t input) const {
  for (size_t i = 0; i < sizeOf(entry.states()); ++i)
    if (entry.states()->Get(i)->input() == input)
      return true;
  return false;
}

bool EntryVerifier::isStateOutput(uint32_t output) const {
  for (size_t i = 0; i < sizeOf(entry.states()); ++i)
    if (entry.states()->Get(i)->output() == output)
      return true;
  return false;
}

uint64_t EntryVerifier::modelBytes(uint32_t index) const {
  const format::ModelTensor &tensor = *program.model_tensors()->Get(index);
  std::span shape(tensor.shape()->data(), tensor.shape()->size());
  return *bytesOf(tensor.dtype(), shape); // verified
}

/// It may go on over the variables after its own, to the end of the last one.
bool EntryVerifier::fitsVariables(const format::Buffer &buffer) const {
  size_t count = sizeOf(program.variables());
  if (buffer.index() >= count || !variablePlaces)
    return false;
  const std::vector<uint64_t> &places = *variablePlaces;
  uint64_t end =
      places[count - 1] + roomOf(*program.variables()->Get(count - 1));
  return buffer.max_bytes() <= end - places[buffer.index()];
}

bool EntryVerifier::verifyPlace(const format::Buffer &buffer, uint32_t index) {
  uint64_t scratch = entry.scratch_bytes();
  bool inRange = true;
  switch (buffer.storage()) {
  case StorageClass::input:
    inRange = buffer.index() < sizeOf(entry.inputs()) &&
              !isStateInput(buffer.index());
    break;
  case StorageClass::output:
    inRange = buffer.index() < sizeOf(entry.outputs()) &&
              !isStateOutput(buffer.index());
    break;
  case StorageClass::constant:
    inRange =
        buffer.index() < sizeOf(program.weights()) &&
        buffer.max_bytes() <= program.weights()->Get(buffer.index())->bytes();
    break;
  case StorageClass::model:
    inRange = isPrepare() && buffer.index() < sizeOf(program.model_tensors()) &&
              buffer.max_bytes() <= modelBytes(buffer.index());
    break;
  case StorageClass::state:
    inRange = !isPrepare() && buffer.index() < sizeOf(entry.states());
    break;
  case StorageClass::scratch:
    inRange = buffer.offset() % kTensorAlignment == 0 &&
              buffer.offset() <= scratch &&
              buffer.max_bytes() <= scratch - buffer.offset();
    break;
  case StorageClass::variable:
    inRange = !isPrepare() && fitsVariables(buffer);
    break;
  case StorageClass::fault:
    inRange = buffer.max_bytes() == 2 * sizeof(int64_t);
    break;
  }
  return inRange || refuse("buffer ", index, " is out of range");
}

bool EntryVerifier::verifyView(const format::Buffer &buffer, uint32_t index) {
  if (buffer.base() < 0)
    return true;
  if (static_cast<uint32_t>(buffer.base()) >= index)
    return refuse("buffer ", index, " is a view of a later one");
  if (!isExpr(buffer.view_offset()))
    return refuse("buffer ", index, " has a bad offset");
  if (buffer.storage() == StorageClass::fault || !holds(buffer.base(), 0))
    return refuse("buffer ", index, " is a view of a fault buffer");
  if (!holds(buffer.base(), buffer.max_bytes()))
    return refuse("buffer ", index, " is larger than what it is a view of");
  return true;
}

bool EntryVerifier::verifyBuffers() {
  variablePlaces = variableOffsets(program);
  for (uint32_t i = 0; i < sizeOf(entry.buffers()); ++i) {
    const format::Buffer &buffer = *entry.buffers()->Get(i);
    if (buffer.storage() > StorageClass::MAX || buffer.space() != entry.space())
      return refuse("buffer ", i, " is of a kind unknown to this runtime");
    bool isView = buffer.base() >= 0;
    if (isView ? !verifyView(buffer, i) : !verifyPlace(buffer, i))
      return false;
  }
  return true;
}

/// Verifies a command of a block at `depth`.
struct EntryVerifier::Visitor {
  EntryVerifier &verifier;
  int depth;
  uint16_t lane;
  LaneOrder &order; ///< of the block so far

  bool operator()(const format::Launch &launch) const {
    order.add(lane);
    return verifier.verifyLaunch(launch);
  }
  bool operator()(const format::Copy &copy) const {
    order.add(lane);
    return verifier.verifyCopy(copy);
  }
  bool operator()(const format::SetSize &set) const {
    return isOnFirstLane("SetSize") && verifier.verifySetSize(set);
  }
  bool operator()(const format::ReadSize &read) const {
    return isOnFirstLane("ReadSize") && verifier.verifyReadSize(read);
  }
  bool operator()(const format::If &branch) const {
    return isOnFirstLane("If") && verifier.verifyBranch(branch, depth);
  }
  bool operator()(const format::Loop &loop) const {
    return isOnFirstLane("Loop") && verifier.verifyLoop(loop, depth);
  }
  bool operator()(const format::RecordEvent &record) const {
    return verifier.verifyRecord(record, lane, order);
  }
  bool operator()(const format::WaitEvent &wait) const {
    return verifier.verifyWait(wait, lane, order);
  }
  bool operator()(const Collective auto &collective) const {
    return verifier.verifyCollective(collective, depth, lane, order);
  }
  bool operator()(const UnknownCommand &command) const {
    return verifier.refuse("command ", verifier.commandCount, " is of kind ",
                           int(command.kind),
                           ", which is unknown to this runtime");
  }

  bool isOnFirstLane(const char *kind) const {
    return lane == 0 || verifier.refuseCommand(kind, kNotOnFirstLane);
  }
};

/// A command that is in range and that the walker cannot execute.
bool EntryVerifier::refuseCommand(const char *kind, const char *reason) {
  return refuse("command ", commandCount, ", ", kind,
                ", cannot be executed: ", reason);
}

bool EntryVerifier::verifyBlock(const format::Block &block, int depth) {
  if (depth > kMaxBlockDepth)
    return refuse("blocks are nested deeper than ", kMaxBlockDepth);
  LaneOrder order(entry.lane_count());
  for (const format::Command *command : *block.commands()) {
    ++commandCount;
    if (command->lane() >= entry.lane_count())
      return refuse("command ", commandCount, " is on lane ", command->lane(),
                    " of ", entry.lane_count());
    if (!visitCommand(*command, Visitor{*this, depth, command->lane(), order}))
      return false;
  }
  if (std::optional<size_t> lane = order.findUnjoined())
    return refuse("lane 0 does not wait for what a block does on lane ", *lane);
  return true;
}

bool EntryVerifier::verifyRecord(const format::RecordEvent &record, size_t lane,
                                 LaneOrder &order) {
  uint32_t event = record.event();
  if (event >= entry.event_count())
    return refuse("an event is out of range");
  if (isRecorded[event])
    return refuse("event ", event, " is recorded twice");
  isRecorded[event] = true;
  order.record(lane, event);
  return true;
}

bool EntryVerifier::verifyWait(const format::WaitEvent &wait, size_t lane,
                               LaneOrder &order) {
  return order.wait(lane, wait.event()) ||
         refuse("command ", commandCount, " waits for event ", wait.event(),
                ", which its block did not record before");
}

bool EntryVerifier::verifyLanes() {
  if (entry.lane_count() < 1 || entry.lane_count() > format::kMaxLanes)
    return refuse("it has ", entry.lane_count(), " lanes, expected 1 to ",
                  format::kMaxLanes);
  if (entry.event_count() > kMaxSlots)
    return refuse("bad number of events ", entry.event_count());
  isRecorded.resize(entry.event_count());
  return true;
}

/// A device makes as many: their number is bounded by that of commands.
bool EntryVerifier::verifyEvents() {
  for (size_t event = 0; event < isRecorded.size(); ++event)
    if (!isRecorded[event])
      return refuse("event ", event, " is never recorded");
  return true;
}

/// Whether one kernel can have both.
static bool haveLikeArguments(const format::Launch &a,
                              const format::Launch &b) {
  return sizeOf(a.buffers()) == sizeOf(b.buffers()) &&
         sizeOf(a.sizes()) == sizeOf(b.sizes()) && a.fault() == b.fault();
}

bool EntryVerifier::verifyLaunch(const format::Launch &launch) {
  std::string_view node = textOf(launch.node());
  if (launch.kernel() >= sizeOf(program.kernels()))
    return refuse("launch of '", node, "' has no such kernel");
  bool isBlock = program.kernels()->Get(launch.kernel())->threads() > 0;
  if (isBlock != (entry.space() == format::MemorySpace::device))
    return refuse("launch of '", node, "' has a kernel of the ",
                  isBlock ? "device" : "host");
  for (size_t i = 0; i < sizeOf(launch.buffers()); ++i)
    if (!isBuffer(launch.buffers()->Get(i)))
      return refuse("launch of '", node, "' has no such buffer");
  for (size_t i = 0; i < sizeOf(launch.sizes()); ++i)
    if (!isExpr(launch.sizes()->Get(i)))
      return refuse("launch of '", node, "' has a bad size");
  if (!isExpr(launch.tasks()) || !isOptionalExpr(launch.flops()) ||
      !isOptionalExpr(launch.bytes()))
    return refuse("launch of '", node, "' has a bad size");
  size_t count = sizeOf(launch.buffers());
  size_t results = sizeOf(program.kernels()->Get(launch.kernel())->results());
  if (results + launch.fault() > count)
    return refuse("launch of '", node, "' lacks a buffer for a result");
  if (launch.fault() &&
      (count == 0 || !isFaultBuffer(launch.buffers()->Get(count - 1))))
    return refuse("launch of '", node, "' has no fault buffer");
  if (const char *lack =
          findLackForLibrary(*program.kernels()->Get(launch.kernel()),
                             count - launch.fault(), entry.slot_count()))
    return refuse("launch of '", node, "' ", lack);
  for (size_t i = 0; i + launch.fault() < count; ++i)
    if (isFaultBuffer(launch.buffers()->Get(i)))
      return refuse("launch of '", node, "' has an unexpected fault buffer");
  return verifyArguments(launch) && verifyCandidates(launch);
}

/// Another kernel of the same side does the same work, with the same arguments.
bool EntryVerifier::verifyCandidates(const format::Launch &launch) {
  const format::Kernel &own = *program.kernels()->Get(launch.kernel());
  std::string_view node = textOf(launch.node());
  for (size_t i = 0; i < sizeOf(launch.candidates()); ++i) {
    const format::Candidate &candidate = *launch.candidates()->Get(i);
    if (candidate.kernel() >= sizeOf(program.kernels()))
      return refuse("launch of '", node, "' has no such candidate");
    const format::Kernel &other = *program.kernels()->Get(candidate.kernel());
    size_t buffers = sizeOf(launch.buffers()) - launch.fault();
    if (const char *lack =
            findLackForLibrary(other, buffers, entry.slot_count()))
      return refuse("a candidate for the launch of '", node, "' ", lack);
    if (!isExpr(candidate.tasks()))
      return refuse("a candidate for the launch of '", node,
                    "' has a bad size");
    const format::Launch *&first = launches[candidate.kernel()];
    if (!first)
      first = &launch;
    if (other.threads() != own.threads() ||
        sizeOf(other.results()) != sizeOf(own.results()) ||
        textOf(own.work()).empty() || textOf(own.plan()).empty() ||
        textOf(other.work()) != textOf(own.work()) ||
        textOf(other.plan()).empty() || !haveLikeArguments(launch, *first))
      return refuse("a candidate for the launch of '", node,
                    "' does other work");
  }
  return true;
}

/// Bytes that the address of a buffer is a multiple of.
uint64_t EntryVerifier::alignmentOf(uint32_t buffer) const {
  uint64_t alignment = kTensorAlignment;
  const format::Buffer *place = entry.buffers()->Get(buffer);
  for (; place->base() >= 0; place = entry.buffers()->Get(place->base()))
    alignment = std::gcd(alignment, knownDivisor(*place->view_offset()));
  return alignment;
}

/// The buffer that it is a view of, or itself.
uint32_t EntryVerifier::rootOf(uint32_t buffer) const {
  while (entry.buffers()->Get(buffer)->base() >= 0)
    buffer = entry.buffers()->Get(buffer)->base();
  return buffer;
}

/// A kernel has one list of parameters, and counts on their alignments.
bool EntryVerifier::verifyArguments(const format::Launch &launch) {
  const format::Kernel &kernel = *program.kernels()->Get(launch.kernel());
  std::string_view node = textOf(launch.node());
  const format::Launch *&first = launches[launch.kernel()];
  if (!first)
    first = &launch;
  if (!haveLikeArguments(launch, *first))
    return refuse("launch of '", node, "' has other arguments than that of '",
                  textOf(first->node()), "'");
  if (kernel.threads() == 0)
    return true;
  size_t count = sizeOf(launch.buffers()) - launch.fault();
  if (sizeOf(kernel.alignments()) != count)
    return refuse("launch of '", node, "' has ", count, " buffers, not ",
                  sizeOf(kernel.alignments()));
  for (size_t i = 0; i < count; ++i)
    if (alignmentOf(launch.buffers()->Get(i)) % kernel.alignments()->Get(i))
      return refuse("launch of '", node, "' has a misaligned buffer ", i);
  return true;
}

bool EntryVerifier::verifyCopy(const format::Copy &copy) {
  return (holds(copy.from(), 0) && holds(copy.to(), 0) &&
          isExpr(copy.bytes())) ||
         refuse("a copy is out of range");
}

/// What keeps it from being executed; null if nothing does. How many ranks
/// there are is not known yet, nor which part of a buffer is a rank's own.
template <Collective Table>
const char *EntryVerifier::findProblem(const Table &table) const {
  if (table.group() != 0)
    return kUnknownGroup;
  if (!isDType(table.dtype()) || !isExpr(table.count()) ||
      !holds(table.from(), 0) || !holds(table.to(), 0))
    return kNoRoom;
  if (addsUp<Table> && !isSummedByRanks(table.dtype()))
    return kNotSummed;
  uint64_t unit = traitsOf(table.dtype()).bytes;
  if (alignmentOf(table.from()) % unit || alignmentOf(table.to()) % unit)
    return kMisaligned;
  if (!movesParts<Table> && table.from() != table.to() &&
      rootOf(table.from()) == rootOf(table.to()))
    return kOverlaps;
  int64_t count = 0;
  if (!readsOnlySlotsBelow(*table.count(), 0))
    return nullptr;
  if (!evaluate(*table.count(), nullptr, count))
    return kNoRoom;
  auto bytes = bytesOf(table.dtype(), std::span(&count, 1));
  bool isRoom =
      bytes && holds(table.from(), *bytes) && holds(table.to(), *bytes);
  return isRoom ? nullptr : kNoRoom;
}

/// All ranks do the collectives in one order, or they wait for ever.
template <Collective Table>
bool EntryVerifier::verifyCollective(const Table &collective, int depth,
                                     size_t lane, LaneOrder &order) {
  const char *problem = findProblem(collective);
  if (!problem && depth > 0)
    problem = kMayBeLeftOut;
  if (!problem && lastCollective &&
      order.countDone(lane, lastCollective->first) < lastCollective->second)
    problem = kNotInOrder;
  order.add(lane);
  lastCollective = {lane, order.countDone(lane, lane)};
  constexpr format::Action kAction = format::ActionTraits<Table>::enum_value;
  return !problem || refuseCommand(format::EnumNameAction(kAction), problem);
}

bool EntryVerifier::verifySetSize(const format::SetSize &set) {
  return (isFree(set.slot()) && isExpr(set.value()) &&
          set.min() <= set.max()) ||
         refuse("a size assignment is out of range");
}

bool EntryVerifier::verifyBranch(const format::If &branch, int depth) {
  if (!holds(branch.condition(), 1))
    return refuse("a condition is out of range");
  return verifyBlock(*branch.then_block(), depth + 1) &&
         verifyBlock(*branch.else_block(), depth + 1);
}

bool EntryVerifier::verifyReadSize(const format::ReadSize &read) {
  return (isFree(read.slot()) && isDType(read.dtype()) &&
          traitsOf(read.dtype()).kind != DTypeKind::Float &&
          holds(read.buffer(), traitsOf(read.dtype()).bytes) &&
          read.min() <= read.max()) ||
         refuse("reading a size of '", textOf(read.node()),
                "' is out of range");
}

bool EntryVerifier::verifyLoop(const format::Loop &loop, int depth) {
  bool inRange = isFree(loop.iteration()) && isOptionalExpr(loop.trips()) &&
                 (loop.condition() < 0 ||
                  holds(static_cast<uint32_t>(loop.condition()), 1)) &&
                 loop.max_trips() >= 0;
  if (!inRange)
    return refuse("loop '", textOf(loop.node()), "' is out of range");
  return verifyBlock(*loop.body(), depth + 1);
}

} // namespace

Status runtime::verifyEntry(const format::Program &program,
                            const format::Entry &entry,
                            KernelLaunches &launches) {
  return EntryVerifier(program, entry, launches).verify();
}
