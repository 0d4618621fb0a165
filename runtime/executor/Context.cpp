#include "runtime/executor/Context.h"

#include "runtime/package/SizeExpr.h"

#include <algorithm>
#include <cstring>

using namespace tcc;
using namespace tcc::runtime;
using format::StorageClass;

Result<std::unique_ptr<Context>>
Context::create(std::shared_ptr<const Executable> executable,
                const ContextOptions &options) {
  const format::Entry *entry =
      executable->findEntry(options.entry, options.variant);
  if (!entry)
    return makeError(Code::Usage, "package '", executable->package().path(),
                     "' has no entry '",
                     format::nameOf(options.entry, options.variant), "'",
                     executable->findEntry(format::EntryKind::accumulate_step)
                         ? ": it was compiled for training, in sessions"
                         : "");
  std::unique_ptr<Context> context(new Context(std::move(executable), *entry));
  if (Status status = context->allocate(options); !status.ok())
    return status;
  return context;
}

Context::~Context() {
  if (walk)
    walk->drain();
}

size_t Context::symbolCount() const {
  const auto *symbols = program->program().symbols();
  return symbols ? symbols->size() : 0;
}

std::string_view Context::inputName(size_t index) const {
  return signature->inputs()->Get(index)->name()->string_view();
}

Status Context::allocate(const ContextOptions &options) {
  allocator = options.allocator;
  runner = options.runner;
  if (!runner && program->device().isHost()) {
    ownPool = std::make_unique<ThreadPool>(
        options.threads > 0 ? options.threads : defaultThreadCount());
    runner = ownPool.get();
  }
  Result<std::shared_ptr<Workspace>> workspace = options.workspace;
  if (!options.workspace)
    workspace = Workspace::create(program->device(), std::span(&signature, 1),
                                  {runner, allocator});
  if (!workspace.ok())
    return workspace.takeStatus();
  walk = std::make_unique<Walker>(program->program(), *signature,
                                  std::move(*workspace));
  inputs.resize(signature->inputs()->size());
  outputs.resize(signature->outputs()->size());
  for (size_t i = 0; i < outputs.size(); ++i)
    outputs[i].shape.resize(signature->outputs()->Get(i)->shape()->size());
  givenDims.resize(symbolCount());
  dims.resize(symbolCount());
  const auto *weights = program->program().weights();
  for (size_t i = 0; weights && i < weights->size(); ++i)
    walk->bind(StorageClass::constant, i,
               const_cast<std::byte *>(program->constant(i)));
  if (Status status = bindVariables(options.variables); !status.ok())
    return status;
  if (Status status = allocateStates(allocator); !status.ok())
    return status;
  return allocateFixed(allocator);
}

Status Context::bindVariables(const Variables *variables) {
  for (const format::Buffer *buffer : *signature->buffers())
    if (buffer->storage() == StorageClass::variable && !variables)
      return makeError(Code::Usage, "entry '", nameOf(*signature),
                       "' has variables: it needs a session");
  for (size_t i = 0; variables && i < variables->size(); ++i)
    walk->bind(StorageClass::variable, i, variables->address(i));
  return Status();
}

/// Bytes of a tensor where all symbols are at their upper bounds.
Result<uint64_t> Context::maxBytes(const format::TensorSpec &spec) {
  std::vector<int64_t> bounds(signature->slot_count());
  for (size_t i = 0; i < symbolCount(); ++i)
    bounds[i] = program->program().symbols()->Get(i)->max();
  uint64_t bytes = traitsOf(spec.dtype()).bytes;
  for (const format::SizeExpr *expr : *spec.shape()) {
    int64_t extent = 0;
    if (!evaluate(*expr, bounds.data(), extent) || extent < 0 ||
        __builtin_mul_overflow(bytes, static_cast<uint64_t>(extent), &bytes))
      return makeError(Code::BadData, "'", spec.name()->string_view(),
                       "' has no bounded size");
  }
  return bytes;
}

Status Context::allocateStates(const Allocator &allocator) {
  size_t count = signature->states() ? signature->states()->size() : 0;
  states.resize(count);
  std::vector<bool> inPlace(count, false);
  for (const format::Buffer *buffer : *signature->buffers()) {
    if (buffer->storage() != StorageClass::state || buffer->base() >= 0)
      continue;
    State &state = states[buffer->index()];
    state.bytes = std::max<uint64_t>(state.bytes, buffer->max_bytes());
    if (buffer->in_place())
      inPlace[buffer->index()] = true;
  }
  for (size_t i = 0; i < count; ++i) {
    const format::StatePair &pair = *signature->states()->Get(i);
    inputs[pair.input()].state = i;
    outputs[pair.output()].state = i;
    State &state = states[i];
    Result<uint64_t> bytes = maxBytes(*signature->inputs()->Get(pair.input()));
    if (!bytes.ok())
      return bytes.takeStatus();
    state.bytes = std::max(state.bytes, *bytes);
    for (Memory *memory : {&state.first, &state.second}) {
      if (memory == &state.second && inPlace[i])
        continue;
      auto allocated = Memory::allocate(
          state.bytes, program->device().allocator(allocator), "a state");
      if (!allocated.ok())
        return allocated.takeStatus();
      *memory = std::move(*allocated);
    }
    state.current = state.first.data();
    state.next = inPlace[i] ? state.current : state.second.data();
  }
  return resetState();
}

Status Context::allocateFixed(const Allocator &allocator) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto *fixed = signature->inputs()->Get(i)->fixed();
    if (!fixed)
      continue;
    auto memory = Memory::allocate(fixed->size(), allocator, inputName(i));
    if (!memory.ok())
      return memory.takeStatus();
    std::copy_n(fixed->data(), fixed->size(),
                reinterpret_cast<uint8_t *>(memory->data()));
    inputs[i].fixedValue = std::move(*memory);
  }
  return Status();
}

Status Context::resetState() {
  if (Status status = checkIdle(); !status.ok())
    return status;
  forgetRun();
  for (Input &input : inputs)
    if (input.state >= 0)
      input.isBound = false;
  for (State &state : states)
    for (Memory *memory : {&state.first, &state.second})
      if (Status status =
              program->device().clear(memory->data(), memory->size());
          !status.ok())
        return status;
  return Status();
}

PlannedMemory Context::planned() const {
  PlannedMemory planned;
  walk->addPlanned(planned);
  for (const State &state : states)
    planned.states += state.first.size() + state.second.size();
  planned.constants = program->constantBytes(std::span(&signature, 1));
  return planned;
}

std::optional<size_t> Context::findInput(std::string_view name) const {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputName(i) == name)
      return i;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

Status Context::resolve() {
  if (Status status = placeInputs(); !status.ok())
    return status;
  if (Status status = resolveDims(); !status.ok())
    return status;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (Status status = checkOutput(i); !status.ok())
      return status;
    if (Status status = placeOutput(i); !status.ok())
      return status;
  }
  isResolved = true;
  return Status();
}

/// A state input is bound to what the last run made of it.
void Context::keepShape(Input &input, std::span<const int64_t> shape) {
  if (input.isBound && std::ranges::equal(input.shape, shape))
    return;
  input.shape.assign(shape.begin(), shape.end());
  input.isBound = true;
  isResolved = false;
}

/// Sets the shape of the last run; nobody may read beyond what holds its
/// elements.
Status Context::measureOutput(size_t index, uint64_t &bytes) {
  const format::TensorSpec &spec = *signature->outputs()->Get(index);
  Output &output = outputs[index];
  uint64_t room = output.isBound ? output.capacity : output.own.size();
  if (output.state >= 0)
    room = states[output.state].bytes;
  bool isValid = true;
  for (size_t axis = 0; axis < output.shape.size(); ++axis)
    isValid &= evaluate(*spec.shape()->Get(axis), walk->slots().data(),
                        output.shape[axis]);
  std::optional<uint64_t> needed = bytesOf(spec.dtype(), output.shape);
  if (!isValid || !needed)
    return makeError(Code::BadData, "output '", spec.name()->string_view(),
                     "' has no valid shape");
  bytes = *needed;
  if (bytes <= room)
    return Status();
  return makeError(Code::BadData, "output '", spec.name()->string_view(),
                   "' has ", bytes, " bytes, planned for ", room);
}

Status Context::finishState(size_t index, size_t bytes) {
  const format::TensorSpec &spec = *signature->outputs()->Get(index);
  Output &output = outputs[index];
  State &state = states[output.state];
  std::swap(state.current, state.next);
  keepShape(inputs[signature->states()->Get(output.state)->input()],
            output.shape);
  if (!output.isBound || bytes == 0)
    return Status();
  if (bytes > output.capacity)
    return makeError(Code::Usage, "output '", spec.name()->string_view(),
                     "' is bound to ", output.capacity, " bytes, needs ",
                     bytes);
  return output.device < 0
             ? walk->download(output.data, state.current, bytes)
             : walk->getStream().copy(output.data, state.current, bytes);
}

Status Context::finishOutputs() {
  bool isHost = program->device().isHost();
  for (size_t i = 0; i < outputs.size(); ++i) {
    Output &output = outputs[i];
    uint64_t bytes = 0;
    if (Status status = measureOutput(i, bytes); !status.ok())
      return status;
    Status status;
    if (output.state >= 0)
      status = finishState(i, bytes);
    else if (!isHost && output.device < 0 && bytes > 0)
      status = walk->download(output.data, output.copy.data(), bytes);
    if (!status.ok())
      return status;
  }
  return Status();
}

Status Context::uploadInputs() {
  for (Input &input : inputs)
    if (input.copiedBytes > 0)
      if (Status status = walk->upload(input.copy.data(),
                                       input.isBound ? input.data
                                                     : input.fixedValue->data(),
                                       input.copiedBytes);
          !status.ok())
        return status;
  return Status();
}

/// Gives the stream everything that a run does.
Status Context::give(std::span<const Download> downloads) {
  if (!isResolved)
    if (Status status = resolve(); !status.ok())
      return status;
  if (Status status = checkFixed(); !status.ok())
    return status;
  for (size_t i = 0; i < states.size(); ++i)
    walk->bindState(i, states[i].current, states[i].next);
  if (Status status = uploadInputs(); !status.ok())
    return status;
  if (Status status = walk->walk(); !status.ok())
    return status;
  if (Status status = finishOutputs(); !status.ok())
    return status;
  for (const Download &download : downloads)
    if (Status status =
            walk->download(download.to, download.from, download.bytes);
        !status.ok())
      return status;
  return walk->seal();
}

Status Context::checkIdle() const {
  return isUnderWay ? Status(Code::Usage, "a run is under way: finish it first")
                    : Status();
}

Status Context::start(std::span<const Download> downloads) {
  if (Status status = checkIdle(); !status.ok())
    return status;
  isDone = false;
  walk->forgetFault();
  Status status = give(downloads);
  isUnderWay = status.ok();
  if (!status.ok()) {
    (void)walk->finish(); // what it began
    walk->drain();
  }
  return status;
}

Status Context::finish() {
  if (!isUnderWay)
    return Status(Code::Usage, "no run is under way");
  isUnderWay = false;
  Status status = walk->finish();
  isDone = status.ok();
  return status;
}

Status Context::run() {
  if (Status status = start(); !status.ok())
    return status;
  return finish();
}

Status Context::fetchState(size_t output) {
  if (Status status = checkIdle(); !status.ok())
    return status;
  Device &device = program->device();
  if (device.isHost() || outputs[output].state < 0)
    return Status();
  State &state = states[outputs[output].state];
  if (Status status = state.fetched.reserve(state.bytes, allocator, "a state");
      !status.ok())
    return status;
  return device.read(state.fetched.data(), state.current, state.bytes);
}

Status Context::fetchStates() {
  for (size_t i = 0; i < outputs.size(); ++i)
    if (Status status = fetchState(i); !status.ok())
      return status;
  return Status();
}

TensorView Context::output(size_t index) const {
  const Output &output = outputs[index];
  void *data = output.data;
  int device = output.isBound ? output.device : -1;
  if (output.state >= 0) {
    const State &state = states[output.state];
    data = program->device().isHost() ? state.current : state.fetched.data();
    device = -1;
  }
  return {data, signature->outputs()->Get(index)->dtype(), output.shape,
          device};
}
