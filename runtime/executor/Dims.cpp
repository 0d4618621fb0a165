// Shapes: the part of Context that finds the symbolic dimensions from those of
// the bound inputs.

#include "runtime/executor/Context.h"
#include "runtime/package/SizeExpr.h"

using namespace tcc;
using namespace tcc::runtime;

uint64_t runtime::elementCount(std::span<const int64_t> shape) {
  uint64_t count = 1;
  for (int64_t dim : shape)
    count *= static_cast<uint64_t>(dim);
  return count;
}

std::string runtime::formatShape(std::span<const int64_t> shape) {
  std::string text;
  for (int64_t dim : shape)
    text += concat(text.empty() ? "" : "x", dim);
  return text.empty() ? "scalar" : text;
}

/// "batch x 3 x ?": symbols by name, other expressions as '?'.
std::string Context::describeShape(const format::TensorSpec &spec) const {
  std::string text;
  for (const format::SizeExpr *expr : *spec.shape()) {
    int64_t slot = slotOf(*expr), extent = 0;
    text += text.empty() ? "" : "x";
    if (slot >= 0)
      text += program->program().symbols()->Get(slot)->name()->string_view();
    else if (readsOnlySlotsBelow(*expr, 0) && evaluate(*expr, nullptr, extent))
      text += std::to_string(extent);
    else
      text += "?";
  }
  return text.empty() ? "scalar" : text;
}

/// Solves expr(symbol) == extent for the one symbol in `expr` that is not yet
/// known, as if linear in it; whether it is linear is checked by checkInput.
bool Context::solveDim(const format::SizeExpr &expr, int64_t extent) {
  int64_t unknown = -1;
  for (const format::SizeInstruction *step : *expr.code()) {
    if (step->op() != format::SizeOp::slot || dims[step->value()])
      continue;
    if (unknown >= 0 && unknown != step->value())
      return false;
    unknown = step->value();
  }
  if (unknown < 0)
    return false;
  int64_t atZero = 0, atOne = 0, slope = 0, rise = 0;
  int64_t *slots = walk->slots().data();
  slots[unknown] = 0;
  if (!evaluate(expr, slots, atZero))
    return false;
  slots[unknown] = 1;
  if (!evaluate(expr, slots, atOne) ||
      __builtin_sub_overflow(atOne, atZero, &slope) || slope <= 0 ||
      __builtin_sub_overflow(extent, atZero, &rise))
    return false;
  dims[unknown] = rise / slope;
  slots[unknown] = rise / slope;
  return true;
}

bool Context::solveInputs(bool areStates) {
  bool changed = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].isBound || (inputs[i].state >= 0) != areStates)
      continue;
    const auto &shape = *signature->inputs()->Get(i)->shape();
    for (size_t axis = 0; axis < shape.size(); ++axis)
      changed |= solveDim(*shape.Get(axis), inputs[i].shape[axis]);
  }
  return changed;
}

void Context::solveDims() {
  dims = givenDims;
  for (size_t i = 0; i < dims.size(); ++i)
    walk->slots()[i] = dims[i].value_or(0);
  // Each round can make another expression solvable. States tell what nothing
  // else does: where they disagree with an input they are what is out of date.
  while (solveInputs(/*areStates=*/false) || solveInputs(/*areStates=*/true)) {
  }
}

Status Context::checkDims() const {
  for (size_t i = 0; i < dims.size(); ++i) {
    const format::Symbol &symbol = *program->program().symbols()->Get(i);
    std::string_view name = symbol.name()->string_view();
    if (!dims[i])
      return makeError(Code::Usage, "dimension '", name, "' is not bound");
    if (*dims[i] < symbol.min() || *dims[i] > symbol.max())
      return makeError(Code::Usage, "dimension '", name, "' is ", *dims[i],
                       ", compiled for ", symbol.min(), "..", symbol.max());
    if (*dims[i] % symbol.divisor() != 0)
      return makeError(Code::Usage, "dimension '", name, "' is ", *dims[i],
                       ", expected a multiple of ", symbol.divisor());
  }
  return Status();
}

Status Context::checkInput(size_t index) const {
  const format::TensorSpec &spec = *signature->inputs()->Get(index);
  const Input &input = inputs[index];
  for (size_t axis = 0; axis < spec.shape()->size(); ++axis) {
    int64_t extent = 0;
    if (!evaluate(*spec.shape()->Get(axis), walk->slots().data(), extent) ||
        extent != input.shape[axis])
      return makeError(Code::Usage, input.state < 0 ? "input '" : "state '",
                       inputName(index), "' is ", formatShape(input.shape),
                       ", expected ", describeShape(spec), ": axis ", axis,
                       " is ", input.shape[axis], ", not ", extent,
                       input.state < 0 ? "" : "; bind a new value or reset it");
  }
  return Status();
}

Status Context::checkOutput(size_t index) const {
  const format::TensorSpec &spec = *signature->outputs()->Get(index);
  const std::vector<int64_t> &expected = outputs[index].expected;
  for (size_t axis = 0; axis < expected.size(); ++axis) {
    const format::SizeExpr &expr = *spec.shape()->Get(axis);
    int64_t extent = 0;
    if (readsOnlySlotsBelow(expr, symbolCount()) &&
        (!evaluate(expr, walk->slots().data(), extent) ||
         extent != expected[axis]))
      return makeError(Code::Usage, "output '", spec.name()->string_view(),
                       "' is ", describeShape(spec), ", bound to ",
                       formatShape(expected), ": axis ", axis, " is ", extent);
  }
  return Status();
}

Status Context::resolveDims() {
  solveDims();
  // A wrong static extent says more than the dimension that it left unknown.
  for (size_t i = 0; i < inputs.size(); ++i) {
    const format::TensorSpec &spec = *signature->inputs()->Get(i);
    for (size_t axis = 0; inputs[i].isBound && axis < spec.shape()->size();
         ++axis)
      if (readsOnlySlotsBelow(*spec.shape()->Get(axis), 0))
        if (Status status = checkInput(i); !status.ok())
          return status;
  }
  if (Status status = checkDims(); !status.ok())
    return status;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].isBound)
      if (Status status = checkInput(i); !status.ok())
        return status;
  return Status();
}

Result<std::vector<int64_t>> Context::inputShape(size_t index) {
  const format::TensorSpec &spec = *signature->inputs()->Get(index);
  solveDims();
  std::vector<int64_t> shape;
  for (const format::SizeExpr *expr : *spec.shape()) {
    for (const format::SizeInstruction *step : *expr->code())
      if (step->op() == format::SizeOp::slot && !dims[step->value()])
        return makeError(Code::Usage, "dimension '",
                         program->program()
                             .symbols()
                             ->Get(step->value())
                             ->name()
                             ->string_view(),
                         "' is not bound");
    int64_t extent = 0;
    if (!evaluate(*expr, walk->slots().data(), extent) || extent < 0)
      return makeError(Code::Usage, "input '", inputName(index),
                       "' has no valid shape for these dimensions");
    shape.push_back(extent);
  }
  return shape;
}
