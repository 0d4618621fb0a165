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
  const format::Entry *entry = executable->findEntry(options.entry);
  if (!entry)
    return makeError(Code::Usage, "package '", executable->package().path(),
                     "' has no entry '", options.entry, "'",
                     executable->findEntry("train_step")
                         ? ": it was compiled for training, in sessions"
                         : "");
  std::unique_ptr<Context> context(new Context(std::move(executable), *entry));
  if (Status status = context->allocate(options); !status.ok())
    return status;
  return context;
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
  if (!runner) {
    ownPool = std::make_unique<ThreadPool>(
        options.threads > 0 ? options.threads : defaultThreadCount());
    runner = ownPool.get();
  }
  auto walker = Walker::create(*signature, program->kernels(), *runner,
                               allocator, options.scratch);
  if (!walker.ok())
    return walker.takeStatus();
  walk = std::move(*walker);
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
      return makeError(Code::Usage, "entry '", signature->name()->string_view(),
                       "' has variables: it needs a session");
  for (size_t i = 0; variables && i < variables->size(); ++i)
    walk->bind(StorageClass::variable, i, variables->bytes(i).data());
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
      auto allocated = Memory::allocate(state.bytes, allocator, "a state");
      if (!allocated.ok())
        return allocated.takeStatus();
      *memory = std::move(*allocated);
    }
    state.current = state.first.data();
    state.next = inPlace[i] ? state.current : state.second.data();
  }
  resetState();
  return Status();
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

void Context::resetState() {
  for (State &state : states)
    for (Memory *memory : {&state.first, &state.second})
      std::fill_n(memory->data(), memory->size(), std::byte(0));
  for (Input &input : inputs)
    if (input.state >= 0)
      input.isBound = false;
  forgetRun();
}

uint64_t Context::plannedBytes() const {
  uint64_t bytes = walk->plannedBytes();
  for (const State &state : states)
    bytes += state.first.size() + state.second.size();
  return bytes;
}

std::optional<size_t> Context::findInput(std::string_view name) const {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputName(i) == name)
      return i;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Binding
//===----------------------------------------------------------------------===//

static bool isAligned(const void *data, DType dtype) {
  return reinterpret_cast<uintptr_t>(data) % traitsOf(dtype).bytes == 0;
}

Status Context::bindInput(size_t index, const TensorView &tensor) {
  if (index >= inputs.size())
    return makeError(Code::Usage, "there is no input ", index, " of ",
                     inputs.size());
  const format::TensorSpec &spec = *signature->inputs()->Get(index);
  Input &input = inputs[index];
  if (!isDType(tensor.dtype) || tensor.dtype != spec.dtype())
    return makeError(Code::Usage, "input '", inputName(index), "' is ",
                     isDType(tensor.dtype) ? traitsOf(tensor.dtype).name
                                           : "unknown",
                     ", expected ", traitsOf(spec.dtype()).name);
  std::optional<uint64_t> bytes = bytesOf(tensor.dtype, tensor.shape);
  if (!bytes)
    return makeError(Code::Usage, "input '", inputName(index),
                     "' has a bad shape ", formatShape(tensor.shape));
  if (tensor.shape.size() != spec.shape()->size())
    return makeError(Code::Usage, "input '", inputName(index), "' is ",
                     formatShape(tensor.shape), ", expected ",
                     describeShape(spec));
  if (*bytes > 0 && (!tensor.data || !isAligned(tensor.data, tensor.dtype)))
    return makeError(Code::Usage, "input '", inputName(index),
                     "' is not at an aligned address");
  if (input.state >= 0) {
    State &state = states[input.state];
    if (*bytes > state.bytes)
      return makeError(Code::Usage, "input '", inputName(index), "' is ",
                       formatShape(tensor.shape), ", expected ",
                       describeShape(spec));
    if (*bytes > 0)
      std::memcpy(state.current, tensor.data, *bytes);
  }
  // A loop that binds the same memory again resolves nothing anew.
  isResolved &= input.isBound && input.data == tensor.data &&
                std::ranges::equal(input.shape, tensor.shape);
  isDone = false;
  input.shape.assign(tensor.shape.begin(), tensor.shape.end());
  input.data = tensor.data;
  input.isBound = true;
  return Status();
}

Status Context::bindOutput(size_t index, void *data, size_t bytes) {
  if (index >= outputs.size())
    return makeError(Code::Usage, "there is no output ", index, " of ",
                     outputs.size());
  const format::TensorSpec &spec = *signature->outputs()->Get(index);
  if (bytes > 0 && (!data || !isAligned(data, spec.dtype())))
    return makeError(Code::Usage, "output '", spec.name()->string_view(),
                     "' is not at an aligned address");
  outputs[index].data = data;
  outputs[index].capacity = bytes;
  outputs[index].isBound = true;
  outputs[index].expected.clear();
  forgetRun();
  return Status();
}

Status Context::bindOutput(size_t index, const TensorView &tensor) {
  if (index >= outputs.size())
    return bindOutput(index, nullptr, 0);
  const format::TensorSpec &spec = *signature->outputs()->Get(index);
  if (tensor.dtype != spec.dtype() ||
      tensor.shape.size() != spec.shape()->size())
    return makeError(
        Code::Usage, "output '", spec.name()->string_view(), "' is ",
        traitsOf(spec.dtype()).name, " ", describeShape(spec), ", bound to ",
        traitsOf(tensor.dtype).name, " ", formatShape(tensor.shape));
  std::optional<uint64_t> bytes = bytesOf(tensor.dtype, tensor.shape);
  if (!bytes)
    return makeError(Code::Usage, "output '", spec.name()->string_view(),
                     "' is bound to a bad shape ", formatShape(tensor.shape));
  Status status = bindOutput(index, tensor.data, *bytes);
  if (status.ok())
    outputs[index].expected.assign(tensor.shape.begin(), tensor.shape.end());
  return status;
}

Status Context::setDim(std::string_view name, int64_t value) {
  for (size_t i = 0; i < symbolCount(); ++i) {
    if (program->program().symbols()->Get(i)->name()->string_view() != name)
      continue;
    givenDims[i] = value;
    forgetRun();
    return Status();
  }
  return makeError(Code::Usage, "there is no dimension '", name, "'");
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

Status Context::checkFixed() const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Input &input = inputs[i];
    if (!input.isBound || input.state >= 0 || !input.fixedValue)
      continue;
    std::span<const std::byte> fixed = input.fixedValue->span();
    if (!std::equal(fixed.begin(), fixed.end(),
                    static_cast<const std::byte *>(input.data)))
      return makeError(Code::Usage, "input '", inputName(i),
                       "' differs from the value it was compiled for");
  }
  return Status();
}

Status Context::placeInputs() {
  for (size_t i = 0; i < inputs.size(); ++i) {
    Input &input = inputs[i];
    if (input.state >= 0)
      continue;
    if (!input.isBound && !input.fixedValue)
      return makeError(Code::Usage, "input '", inputName(i), "' is not bound");
    const void *data = input.isBound ? input.data : input.fixedValue->data();
    walk->bind(StorageClass::input, i, const_cast<void *>(data));
  }
  return Status();
}

/// An output whose extents are known before the run must hold them, any other
/// its upper bound: the largest of its buffers.
Status Context::placeOutput(size_t index) {
  const format::TensorSpec &spec = *signature->outputs()->Get(index);
  Output &output = outputs[index];
  if (output.state >= 0)
    return Status();
  uint64_t planned = 0;
  for (const format::Buffer *buffer : *signature->buffers())
    if (buffer->storage() == StorageClass::output && buffer->index() == index &&
        buffer->base() < 0)
      planned = std::max<uint64_t>(planned, buffer->max_bytes());
  uint64_t needed = traitsOf(spec.dtype()).bytes;
  for (const format::SizeExpr *expr : *spec.shape()) {
    int64_t extent = 0;
    if (!readsOnlySlotsBelow(*expr, symbolCount())) {
      needed = planned;
      break;
    }
    if (!evaluate(*expr, walk->slots().data(), extent) || extent < 0 ||
        __builtin_mul_overflow(needed, static_cast<uint64_t>(extent), &needed))
      return makeError(Code::Usage, "output '", spec.name()->string_view(),
                       "' has no valid shape for these dimensions");
  }
  if (output.isBound && output.capacity < needed)
    return makeError(Code::Usage, "output '", spec.name()->string_view(),
                     "' is bound to ", output.capacity, " bytes, needs ",
                     needed);
  if (!output.isBound && output.own.size() < needed) {
    auto memory = Memory::allocate(std::max(needed, planned), allocator,
                                   spec.name()->string_view());
    if (!memory.ok())
      return memory.takeStatus();
    output.own = std::move(*memory);
  }
  if (!output.isBound)
    output.data = output.own.data();
  walk->bind(StorageClass::output, index, output.data);
  return Status();
}

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

Status Context::finishOutputs() {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const format::TensorSpec &spec = *signature->outputs()->Get(i);
    Output &output = outputs[i];
    uint64_t bytes = 0;
    if (Status status = measureOutput(i, bytes); !status.ok())
      return status;
    if (output.state < 0)
      continue;
    State &state = states[output.state];
    std::swap(state.current, state.next);
    keepShape(inputs[signature->states()->Get(output.state)->input()],
              output.shape);
    if (!output.isBound || bytes == 0)
      continue;
    if (bytes > output.capacity)
      return makeError(Code::Usage, "output '", spec.name()->string_view(),
                       "' is bound to ", output.capacity, " bytes, needs ",
                       bytes);
    std::memcpy(output.data, state.current, bytes);
  }
  return Status();
}

Status Context::run() {
  isDone = false;
  if (!isResolved)
    if (Status status = resolve(); !status.ok())
      return status;
  if (Status status = checkFixed(); !status.ok())
    return status;
  for (size_t i = 0; i < states.size(); ++i)
    walk->bindState(i, states[i].current, states[i].next);
  if (Status status = walk->walk(); !status.ok())
    return status;
  Status status = finishOutputs();
  isDone = status.ok();
  return status;
}

TensorView Context::output(size_t index) const {
  const Output &output = outputs[index];
  void *data = output.data;
  if (output.state >= 0)
    data = states[output.state].current;
  return {data, signature->outputs()->Get(index)->dtype(), output.shape};
}
