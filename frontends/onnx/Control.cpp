#include "frontends/onnx/GraphImporter.h"
#include "frontends/onnx/Ops.h"
#include "frontends/onnx/RuntimeShapes.h"

using namespace mlir;

namespace tcc::onnx_import {

static const onnx::GraphProto *getBody(Node &node, StringRef name) {
  const auto *attribute = node.findAttr(name);
  if (attribute && attribute->has_g())
    return &attribute->g();
  node.fail("attribute '" + name + "' is not a graph");
  return nullptr;
}

/// Marks all results as invalid: what went wrong is reported already.
static void setInvalid(Node &node) {
  for (int64_t i = 0; i < node.getNumOutputs(); ++i)
    node.setTensor(i, node.getImporter().getPool().makeInvalid());
}

static std::optional<bool> getKnownBool(GraphImporter &importer,
                                        Tensor &tensor) {
  auto content = importer.getContent(tensor);
  if (!content || content->size() != 1)
    return std::nullopt;
  auto value = graph::getConstant(content->front());
  return value ? std::optional(*value != 0) : std::nullopt;
}

/// Values of tensors; null where one is invalid, and the node fails where one
/// is a sequence or an optional without a value.
static SmallVector<Value> materializeAll(Node &node,
                                         ArrayRef<Tensor *> tensors) {
  SmallVector<Value> values;
  for (Tensor *tensor : tensors) {
    if (tensor->sequence || tensor->isAbsent)
      node.unsupported("a sequence or an optional that crosses a loop");
    values.push_back(node.getImporter().materialize(*tensor));
  }
  return values;
}

/// The names of the node's results, up to the last that has one.
static SmallVector<std::string> getResultNames(Node &node) {
  SmallVector<std::string> names;
  for (int64_t i = 0; i < node.getNumOutputs(); ++i)
    names.push_back(node.getResultName(i));
  return names;
}

static Tensor *wrap(Node &node, Value value) {
  Tensor tensor;
  tensor.type = cast<RankedTensorType>(value.getType());
  tensor.value = value;
  return node.getImporter().getPool().make(std::move(tensor));
}

// --- If ----------------------------------------------------------------------

namespace {

/// What a branch gives: a length for each result, nullopt for a tensor, and the
/// tensors of all.
struct BranchResults {
  static constexpr int64_t kAbsent = -1;
  SmallVector<std::optional<int64_t>> lengths;
  SmallVector<Tensor *> tensors;
};

} // namespace

static BranchResults takeApart(ArrayRef<Tensor *> given) {
  BranchResults results;
  for (Tensor *tensor : given) {
    auto &length = results.lengths.emplace_back();
    if (tensor->isAbsent)
      length = BranchResults::kAbsent;
    else if (!tensor->sequence)
      results.tensors.push_back(tensor);
    else {
      length = tensor->sequence->size();
      llvm::append_range(results.tensors, *tensor->sequence);
    }
  }
  return results;
}

/// The results of a node from the values of their tensors, in order.
static void setTogether(Node &node, ArrayRef<std::optional<int64_t>> lengths,
                        ArrayRef<Value> values) {
  TensorPool &pool = node.getImporter().getPool();
  for (auto [i, length] : llvm::enumerate(lengths)) {
    if (!length) {
      node.setResult(i, values.front());
      values = values.drop_front();
    } else if (*length == BranchResults::kAbsent) {
      node.setTensor(i, pool.makeAbsent());
    } else {
      SmallVector<Tensor *> elements;
      for (Value value : values.take_front(*length))
        elements.push_back(wrap(node, value));
      node.setTensor(i, pool.makeSequence(elements));
      values = values.drop_front(*length);
    }
  }
}

/// Names of the tensors that results of `lengths` are made of.
static SmallVector<std::string>
nameParts(Node &node, ArrayRef<std::optional<int64_t>> lengths) {
  SmallVector<std::string> names;
  for (auto [i, length] : llvm::enumerate(lengths)) {
    std::string name = node.getResultName(i);
    if (!length)
      names.push_back(name);
    for (int64_t k = 0; k < length.value_or(0); ++k)
      names.push_back(name + "[" + std::to_string(k) + "]");
  }
  return names;
}

static void importBothBranches(Node &node, const onnx::GraphProto &thenBody,
                               const onnx::GraphProto &elseBody) {
  GraphImporter &importer = node.getImporter();
  Value condition = node.reshape(node.input(0), {});
  bool isInvalid = false;
  BranchResults branches[2];
  SmallVector<std::string> names;
  Emitter emitter(node.getBuilder(), node.getLoc(), node.getSizes());
  SmallVector<Value> results =
      emitter.branch(condition, names, [&](bool isThen) -> SmallVector<Value> {
        BranchResults &own = branches[isThen ? 0 : 1];
        own = takeApart(
            importer.importSubgraph(isThen ? thenBody : elseBody, {}));
        names = nameParts(node, own.lengths);
        SmallVector<Value> values;
        for (Tensor *tensor : own.tensors) {
          isInvalid |= tensor->isInvalid;
          values.push_back(importer.materialize(*tensor));
        }
        if (!isThen && own.lengths != branches[0].lengths)
          emitter.unsupported("a branch that is known only at run time, with "
                              "sequences of other lengths than the other's or "
                              "optionals that one of them lacks,");
        return values;
      });
  importer.forgetEvaluated();
  if (isInvalid)
    return setInvalid(node);
  if (emitter.hasFailed())
    return (void)node.failAs(emitter);
  if (int64_t(branches[0].lengths.size()) < node.getNumOutputs())
    return (void)node.fail("a branch has too few outputs");
  setTogether(node, branches[0].lengths, results);
}

static void importIf(Node &node) {
  const auto *thenBody = getBody(node, "then_branch");
  const auto *elseBody = getBody(node, "else_branch");
  if (!thenBody || !elseBody || !node.tensor(0))
    return;
  auto isTaken = getKnownBool(node.getImporter(), *node.tensor(0));
  if (!isTaken)
    return importBothBranches(node, *thenBody, *elseBody);
  auto results =
      node.getImporter().importSubgraph(*isTaken ? *thenBody : *elseBody, {});
  if (int64_t(results.size()) < node.getNumOutputs())
    return (void)node.fail("a branch has too few outputs");
  for (auto [i, result] : llvm::enumerate(results))
    node.setTensor(i, result);
}

// --- Loop --------------------------------------------------------------------

/// More iterations are not unrolled.
constexpr int64_t kMaxUnrolled = 256;

/// A Loop node: its body maps (iteration, condition, carried...) to (condition,
/// carried..., slices...).
struct Loop {
  const onnx::GraphProto *body;
  SmallVector<Tensor *> carried;
  int64_t sliceCount;
  std::optional<AffineExpr> trips;
  bool startsKnown; // the initial condition is known to be true

  /// True if few iterations are known to be.
  bool canUnroll() const {
    auto count = trips ? graph::getConstant(*trips) : std::nullopt;
    return startsKnown && count && *count <= kMaxUnrolled;
  }
};

static Tensor *makeScalar(Node &node, AffineExpr value, unsigned width) {
  Tensor tensor;
  tensor.type =
      RankedTensorType::get({}, IntegerType::get(node.getContext(), width));
  tensor.content = Content{value};
  return node.getImporter().getPool().make(std::move(tensor));
}

/// Repeats the body at import; needed where carried shapes change or sequences
/// grow. Trip count and condition must be known.
static void unrollLoop(Node &node, const Loop &loop) {
  auto trips = loop.trips ? graph::getConstant(*loop.trips) : std::nullopt;
  SmallVector<Tensor *> carried = loop.carried;
  SmallVector<SmallVector<Value>> slices(loop.sliceCount);
  AffineExpr one = node.getSizes().constant(1);
  for (int64_t i = 0; !trips || i < *trips; ++i) {
    if (i == kMaxUnrolled)
      return (void)node.unsupported("a loop of changing shapes with more than "
                                    "256 iterations");
    SmallVector<Tensor *> inputs = {
        makeScalar(node, node.getSizes().constant(i), 64),
        makeScalar(node, one, 1)};
    inputs.append(carried);
    auto results = node.getImporter().importSubgraph(*loop.body, inputs);
    for (Tensor *result : results)
      if (result->isInvalid)
        return setInvalid(node);
    auto goesOn = getKnownBool(node.getImporter(), *results[0]);
    if (!goesOn)
      return (void)node.unsupported("a loop of changing shapes or unknown "
                                    "length with a condition at run time");
    size_t first = 1 + carried.size();
    carried.assign(results.begin() + 1, results.begin() + first);
    for (auto [j, values] : llvm::enumerate(slices)) {
      Tensor &slice = *results[first + j];
      if (!slice.isTensor())
        return (void)node.fail("an output to stack is not a tensor");
      values.push_back(
          node.unsqueeze(node.getImporter().materialize(slice), {0}));
    }
    if (!*goesOn)
      break;
  }
  for (auto [i, tensor] : llvm::enumerate(carried))
    node.setTensor(i, tensor);
  for (auto [i, values] : llvm::enumerate(slices)) {
    if (values.empty())
      return (void)node.unsupported("a stacked result of no iterations");
    node.setResult(carried.size() + i, node.concat(values, 0));
  }
}

constexpr llvm::StringLiteral kOpenSequence =
    "a sequence or an optional in a loop of a length that is known only at run "
    "time";

/// What importing a loop's body told.
enum class BodyState { fits, changesTypes, hasSequence, isInvalid };

/// `x` with the extents that `info` declares where a run computes its own; the
/// run ends where they differ.
static Value settleExtents(Node &node, Value x,
                           const onnx::ValueInfoProto &info) {
  const onnx::TensorShapeProto &shape = info.type().tensor_type().shape();
  if (!x || shape.dim_size() != node.rank(x))
    return x;
  bool isSettled = true;
  SmallVector<SizeElement> extents;
  for (auto [own, dim] : llvm::zip(node.extents(x), shape.dim())) {
    extents.push_back({own, nullptr});
    if (!graph::isComputed(own, node.getSizes().getSymbols()) ||
        !dim.has_dim_value() || dim.dim_value() < 0)
      continue;
    demand(node,
           node.compare(graph::CompareKind::eq, node.size(own),
                        index(node, dim.dim_value())),
           "an extent of '" + info.name() + "' is not as declared");
    extents.back().known = node.getSizes().constant(dim.dim_value());
    isSettled = false;
  }
  SmallVector<Value> low(extents.size(), index(node, 0));
  return isSettled
             ? x
             : padToAtRunTime(node, x, extents, low, node.constantLike(0, x));
}

static SmallVector<Value> importBody(Node &node, const Loop &loop,
                                     Value iteration, ValueRange carried,
                                     BodyState &state) {
  GraphImporter &importer = node.getImporter();
  importer.forgetEvaluated(); // an earlier body is erased
  SmallVector<Tensor *> inputs = {
      wrap(node, iteration), makeScalar(node, node.getSizes().constant(1), 1)};
  for (Value value : carried)
    inputs.push_back(wrap(node, value));
  auto results = importer.importSubgraph(*loop.body, inputs);
  SmallVector<Value> values;
  for (auto [i, tensor] : llvm::enumerate(results)) {
    if (tensor->isInvalid)
      state = BodyState::isInvalid;
    else if (!tensor->isTensor())
      state = BodyState::hasSequence;
    else if (i >= 1 && i <= carried.size() &&
             tensor->type != carried[i - 1].getType() && loop.canUnroll())
      state = BodyState::changesTypes;
    if (state != BodyState::fits)
      return {};
    Value value = importer.materialize(*tensor);
    auto known = i == 0 ? getKnownBool(importer, *tensor) : std::nullopt;
    if (known)
      value = node.constant(*known, tensor->type.getElementType());
    else if (i > 0)
      value = settleExtents(node, value, loop.body->output(i));
    values.push_back(value);
  }
  values[0] = node.reshape(values[0], {});
  return values;
}

static std::optional<Loop> readLoop(Node &node) {
  Loop loop;
  loop.body = getBody(node, "body");
  if (!loop.body)
    return std::nullopt;
  for (int64_t i = 2; i < node.getNumInputs(); ++i)
    loop.carried.push_back(node.hasInput(i)
                               ? node.tensor(i)
                               : node.getImporter().getPool().makeAbsent());
  int64_t count = loop.carried.size();
  loop.sliceCount = loop.body->output_size() - 1 - count;
  if (node.hasFailed() || loop.sliceCount < 0 ||
      loop.body->input_size() != count + 2 ||
      node.getNumOutputs() > loop.body->output_size() - 1) {
    node.fail("the body's inputs and outputs do not fit the node's");
    return std::nullopt;
  }
  auto trips = node.knownContent(0);
  if (trips && trips->size() == 1)
    loop.trips = trips->front();
  loop.startsKnown = !node.hasInput(1) ||
                     getKnownBool(node.getImporter(), *node.tensor(1)) == true;
  return loop;
}

static void importLoop(Node &node) {
  auto loop = readLoop(node);
  if (!loop)
    return;
  bool hasSequence = llvm::any_of(loop->carried, [](Tensor *tensor) {
    return tensor->sequence || tensor->isAbsent;
  });
  bool isKnown = loop->startsKnown && (loop->trips || !node.hasInput(0));
  if (hasSequence && isKnown)
    return unrollLoop(node, *loop);
  if (hasSequence)
    return (void)node.unsupported(kOpenSequence);
  LoopLength length;
  if (node.hasInput(0))
    length.trips = node.reshape(node.input(0), {});
  if (node.hasInput(1) && !loop->startsKnown)
    length.condition = node.reshape(node.input(1), {});
  if (loop->trips)
    length.known = *loop->trips;
  length.names = getResultNames(node);
  SmallVector<Value> inits = materializeAll(node, loop->carried);
  if (node.hasFailed())
    return;
  BodyState state = BodyState::fits;
  Emitter emitter(node.getBuilder(), node.getLoc(), node.getSizes());
  auto results =
      emitter.loop(length, inits, [&](Value iteration, ValueRange carried) {
        return importBody(node, *loop, iteration, carried, state);
      });
  node.getImporter().forgetEvaluated();
  if (state == BodyState::isInvalid)
    return setInvalid(node);
  if (state == BodyState::changesTypes ||
      (state == BodyState::hasSequence && isKnown))
    return unrollLoop(node, *loop);
  if (state == BodyState::hasSequence)
    return (void)node.unsupported(kOpenSequence);
  if (emitter.hasFailed())
    return (void)node.failAs(emitter);
  for (auto [i, result] : llvm::enumerate(results))
    node.setResult(i, result);
}

// --- Scan --------------------------------------------------------------------

struct Scan {
  const onnx::GraphProto *body;
  SmallVector<Value> states, inputs;
  SmallVector<int64_t> inputAxes, inputReversed, outputAxes, outputReversed;
};

static SmallVector<int64_t> readFlags(Node &node, StringRef name,
                                      int64_t count) {
  auto flags = node.intsAttr(name);
  if (flags && int64_t(flags->size()) != count)
    node.fail("attribute '" + name + "' needs " + llvm::Twine(count) +
              " values");
  return flags && !node.hasFailed() ? *flags : SmallVector<int64_t>(count, 0);
}

/// States and what is scanned are the node's inputs from `first` on.
static std::optional<Scan> readScan(Node &node, int64_t first) {
  Scan scan;
  scan.body = getBody(node, "body");
  int64_t scanned = node.intAttr("num_scan_inputs", 0);
  int64_t given = node.getNumInputs() - first, states = given - scanned;
  if (node.hasFailed())
    return std::nullopt;
  int64_t outputs = scan.body->output_size() - states;
  if (scanned < 1 || states < 0 || outputs < 0 ||
      scan.body->input_size() != given ||
      scan.body->output_size() < node.getNumOutputs()) {
    node.fail("the body's inputs and outputs do not fit the node's");
    return std::nullopt;
  }
  SmallVector<Value> inputs = node.inputsFrom(first);
  if (node.hasFailed())
    return std::nullopt;
  scan.states.assign(inputs.begin(), inputs.begin() + states);
  scan.inputs.assign(inputs.begin() + states, inputs.end());
  scan.inputAxes = readFlags(node, "scan_input_axes", scanned);
  scan.inputReversed = readFlags(
      node, node.getVersion() < 9 ? "directions" : "scan_input_directions",
      scanned);
  scan.outputAxes = readFlags(node, "scan_output_axes", outputs);
  scan.outputReversed = readFlags(node, "scan_output_directions", outputs);
  for (int64_t i = 0; i < scanned && !node.hasFailed(); ++i)
    scan.inputAxes[i] = node.axis(scan.inputAxes[i], node.rank(scan.inputs[i]));
  if (node.hasFailed())
    return std::nullopt;
  return scan;
}

/// The stacked slices with their axis and order as asked for.
static Value arrangeStack(Node &node, Value stacked, int64_t axis,
                          bool isReversed) {
  if (!stacked)
    return nullptr;
  AffineExpr extent = graph::getExtent(stacked, 0);
  if (isReversed)
    stacked = node.slice(stacked, 0, extent - 1, extent, -1);
  int64_t rank = node.rank(stacked), target = node.axis(axis, rank);
  if (node.hasFailed())
    return nullptr;
  SmallVector<int64_t> permutation;
  for (int64_t i = 1; i < rank; ++i)
    permutation.push_back(i);
  permutation.insert(permutation.begin() + target, 0);
  return node.transpose(stacked, permutation);
}

/// The last states, then what the iterations gave, stacked. Empty or with null
/// values on failure; `isInvalid` where that is reported already.
static SmallVector<Value> emitScan(Node &node, const Scan &scan,
                                   bool &isInvalid) {
  GraphImporter &importer = node.getImporter();
  AffineExpr count = graph::getExtent(scan.inputs[0], scan.inputAxes[0]);
  Value trips = node.size(count);
  auto results = node.loop(
      {.trips = trips, .known = count}, scan.states,
      [&](Value iteration, ValueRange carried) -> SmallVector<Value> {
        importer.forgetEvaluated(); // an earlier body is erased
        SmallVector<Tensor *> inputs;
        for (Value value : carried)
          inputs.push_back(wrap(node, value));
        Value end = node.sub(trips, node.constant(1, node.elementType(trips)));
        for (auto [i, x] : llvm::enumerate(scan.inputs)) {
          Value position =
              scan.inputReversed[i] ? node.sub(end, iteration) : iteration;
          Value part = node.sliceAt(x, scan.inputAxes[i], position);
          if (!part)
            return {};
          inputs.push_back(wrap(node, part));
        }
        SmallVector<Value> values = {
            node.constant(1, IntegerType::get(node.getContext(), 1))};
        for (Tensor *tensor : importer.importSubgraph(*scan.body, inputs)) {
          isInvalid |= tensor->isInvalid;
          values.push_back(importer.materialize(*tensor));
        }
        return values;
      });
  importer.forgetEvaluated();
  size_t states = scan.states.size();
  for (auto [i, result] : llvm::enumerate(results))
    if (i >= states && !isInvalid)
      result = arrangeStack(node, result, scan.outputAxes[i - states],
                            scan.outputReversed[i - states]);
  return results;
}

static void setScanResults(Node &node, ArrayRef<Value> results,
                           bool isInvalid) {
  if (isInvalid)
    return setInvalid(node);
  if (!node.hasFailed())
    for (auto [i, result] : llvm::enumerate(results))
      node.setResult(i, result);
}

static void importScan(Node &node) {
  auto scan = readScan(node, 0);
  if (!scan)
    return;
  bool isInvalid = false;
  auto results = emitScan(node, *scan, isInvalid);
  setScanResults(node, results, isInvalid);
}

/// Operator set 8: one scan of axis 1 for each element of axis 0, which all
/// operands have.
static void importBatchedScan(Node &node) {
  if (node.hasInput(0))
    return (void)node.unsupported("sequence_lens");
  auto scan = readScan(node, 1);
  if (!scan)
    return;
  SmallVector<Value> operands(scan->states);
  llvm::append_range(operands, scan->inputs);
  for (auto [i, operand] : llvm::enumerate(operands))
    if (node.rank(operand) < (i < scan->states.size() ? 1 : 2) ||
        !graph::isEqual(graph::getExtent(operand, 0),
                        graph::getExtent(operands.front(), 0)))
      return (void)node.fail("operands [batch, ...] of one batch are expected");
  AffineExpr batch = graph::getExtent(operands.front(), 0);
  bool isInvalid = false;
  auto results =
      node.loop({.trips = node.size(batch), .known = batch}, {},
                [&](Value element, ValueRange) {
                  Scan own = *scan;
                  for (SmallVector<Value> *values : {&own.states, &own.inputs})
                    for (Value &value : *values)
                      value = node.sliceAt(value, 0, element);
                  SmallVector<Value> values = {
                      node.constant(1, IntegerType::get(node.getContext(), 1))};
                  if (!node.hasFailed())
                    llvm::append_range(values, emitScan(node, own, isInvalid));
                  return values;
                });
  node.getImporter().forgetEvaluated();
  setScanResults(node, results, isInvalid);
}

static constexpr int64_t last = kLastOpset;
static const OpRow rows[] = {
    {"If", 1, last, importIf},
    {"Loop", 1, last, importLoop},
    {"Scan", 8, 8, importBatchedScan},
    {"Scan", 9, last, importScan},
};

ArrayRef<OpRow> getControlOps() { return rows; }

} // namespace tcc::onnx_import
