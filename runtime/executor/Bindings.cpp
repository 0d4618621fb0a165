// The part of Context that binds tensors and finds them places on the device.

#include "runtime/base/Alignment.h"
#include "runtime/executor/Context.h"
#include "runtime/package/SizeExpr.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::runtime;
using format::StorageClass;

/// Whether kernels and copies may use an address of the caller.
Status Context::checkPlace(std::string_view what, std::string_view name,
                           const TensorView &tensor) const {
  bool isOnDevice = tensor.device >= 0;
  if (isOnDevice && tensor.device != program->device().ordinal())
    return makeError(Code::Usage, what, " '", name, "' lies on CUDA device ",
                     tensor.device, ", the package runs on ",
                     program->device().name());
  size_t alignment =
      isOnDevice ? size_t(kTensorAlignment) : traitsOf(tensor.dtype).bytes;
  if (tensor.data && reinterpret_cast<uintptr_t>(tensor.data) % alignment == 0)
    return Status();
  return makeError(
      Code::Usage, what, " '", name, "' is not at an aligned address",
      isOnDevice ? concat(": on a device, a multiple of ", kTensorAlignment)
                 : "");
}

/// The first value of a state.
Status Context::setState(State &state, const TensorView &tensor, size_t bytes) {
  if (tensor.device < 0)
    return program->device().write(state.current, tensor.data, bytes);
  Stream &stream = walk->getStream();
  if (Status status = walk->follow(); !status.ok())
    return status;
  if (Status status = stream.copy(state.current, tensor.data, bytes);
      !status.ok())
    return status;
  return stream.wait();
}

Status Context::setStream(void *stream) {
  if (Status status = checkIdle(); !status.ok())
    return status;
  if (program->device().isHost())
    return Status(Code::Usage, "the program runs on the cpu: it has no stream");
  walk->setCaller(stream);
  return Status();
}

Status Context::bindInput(size_t index, const TensorView &tensor) {
  if (Status status = checkIdle(); !status.ok())
    return status;
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
  if (*bytes > 0)
    if (Status status = checkPlace("input", inputName(index), tensor);
        !status.ok())
      return status;
  if (tensor.device >= 0 && input.fixedValue)
    return makeError(Code::Usage, "input '", inputName(index),
                     "' is fixed: bind it in the host's memory");
  if (input.state >= 0) {
    State &state = states[input.state];
    if (*bytes > state.bytes)
      return makeError(Code::Usage, "input '", inputName(index), "' is ",
                       formatShape(tensor.shape), ", expected ",
                       describeShape(spec));
    if (*bytes > 0)
      if (Status status = setState(state, tensor, *bytes); !status.ok())
        return status;
  }
  // A loop that binds the same memory again resolves nothing anew.
  isResolved &= input.isBound && input.data == tensor.data &&
                input.device == tensor.device &&
                std::ranges::equal(input.shape, tensor.shape);
  isDone = false;
  input.shape.assign(tensor.shape.begin(), tensor.shape.end());
  input.data = tensor.data;
  input.device = tensor.device;
  input.isBound = true;
  return Status();
}

Status Context::bindOutput(size_t index, void *data, size_t bytes, int device) {
  if (Status status = checkIdle(); !status.ok())
    return status;
  if (index >= outputs.size())
    return makeError(Code::Usage, "there is no output ", index, " of ",
                     outputs.size());
  const format::TensorSpec &spec = *signature->outputs()->Get(index);
  if (bytes > 0)
    if (Status status = checkPlace("output", spec.name()->string_view(),
                                   {data, spec.dtype(), {}, device});
        !status.ok())
      return status;
  outputs[index].data = data;
  outputs[index].capacity = bytes;
  outputs[index].device = device;
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
  Status status = bindOutput(index, tensor.data, *bytes, tensor.device);
  if (status.ok())
    outputs[index].expected.assign(tensor.shape.begin(), tensor.shape.end());
  return status;
}

Status Context::setDim(std::string_view name, int64_t value) {
  if (Status status = checkIdle(); !status.ok())
    return status;
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
// Placing
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

/// The most that kernels touch of an input or output: its largest buffer.
uint64_t Context::bufferBytes(StorageClass storage, size_t index) const {
  uint64_t bytes = 0;
  for (const format::Buffer *buffer : *signature->buffers())
    if (buffer->storage() == storage && buffer->index() == index &&
        buffer->base() < 0)
      bytes = std::max<uint64_t>(bytes, buffer->max_bytes());
  return bytes;
}

Status Context::placeInputs() {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Input &input = inputs[i];
    if (input.state >= 0)
      continue;
    if (!input.isBound && !input.fixedValue)
      return makeError(Code::Usage, "input '", inputName(i), "' is not bound");
    if (Status status = placeInput(i); !status.ok())
      return status;
  }
  return Status();
}

Status Context::placeInput(size_t index) {
  Input &input = inputs[index];
  Device &device = program->device();
  const void *data = input.isBound ? input.data : input.fixedValue->data();
  uint64_t planned = bufferBytes(StorageClass::input, index);
  input.copiedBytes = 0;
  if (!device.isHost() && input.device < 0 && planned > 0) {
    size_t bytes =
        input.isBound
            ? *bytesOf(signature->inputs()->Get(index)->dtype(), input.shape)
            : input.fixedValue->size();
    if (Status status =
            input.copy.reserve(std::max<size_t>(bytes, planned),
                               device.allocator(allocator), inputName(index));
        !status.ok())
      return status;
    input.copiedBytes = bytes;
    data = input.copy.data();
  } else if (!device.isHost() && input.device < 0) {
    data = nullptr; // no elements: nothing is read
  }
  walk->bind(StorageClass::input, index, const_cast<void *>(data));
  return Status();
}

/// What an output's memory must hold: its elements, if its extents are known
/// before the run, else all of its upper bound.
Status Context::neededBytes(size_t index, uint64_t &bytes) const {
  const format::TensorSpec &spec = *signature->outputs()->Get(index);
  bytes = traitsOf(spec.dtype()).bytes;
  for (const format::SizeExpr *expr : *spec.shape()) {
    int64_t extent = 0;
    if (!readsOnlySlotsBelow(*expr, symbolCount())) {
      bytes = bufferBytes(StorageClass::output, index);
      return Status();
    }
    if (!evaluate(*expr, walk->slots().data(), extent) || extent < 0 ||
        __builtin_mul_overflow(bytes, static_cast<uint64_t>(extent), &bytes))
      return makeError(Code::Usage, "output '", spec.name()->string_view(),
                       "' has no valid shape for these dimensions");
  }
  return Status();
}

Status Context::placeOutput(size_t index) {
  Output &output = outputs[index];
  Device &device = program->device();
  std::string_view name =
      signature->outputs()->Get(index)->name()->string_view();
  if (output.state >= 0)
    return Status();
  uint64_t needed = 0;
  if (Status status = neededBytes(index, needed); !status.ok())
    return status;
  uint64_t room = std::max(needed, bufferBytes(StorageClass::output, index));
  if (output.isBound && output.capacity < needed)
    return makeError(Code::Usage, "output '", name, "' is bound to ",
                     output.capacity, " bytes, needs ", needed);
  if (!output.isBound && output.own.size() < needed)
    if (Status status =
            output.own.reserve(room, device.staging(allocator), name);
        !status.ok())
      return status;
  if (!output.isBound)
    output.data = output.own.data();
  void *place = output.data;
  if (!device.isHost() && output.device < 0) {
    if (Status status =
            output.copy.reserve(room, device.allocator(allocator), name);
        !status.ok())
      return status;
    place = output.copy.data();
  }
  walk->bind(StorageClass::output, index, place);
  return Status();
}
