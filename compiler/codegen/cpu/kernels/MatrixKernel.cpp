#include "compiler/codegen/cpu/kernels/MatrixKernel.h"
#include "compiler/codegen/cpu/tile/PackedUnit.h"
#include "compiler/passes/graph/fusion/Region.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::graph;

namespace tcc::cpu {

VectorUnit getVectorUnit(const KernelOptions &options) {
  return {options.vectorBytes, options.hasPairProducts,
          options.hasTileRegisters};
}

Memory getMemory(KernelFrame &frame, Value input) {
  return {frame.elements.getBuffer(input).getPointer(),
          getSignless(getElementTypeOrSelf(input))};
}

// --- Blocks

static constexpr StringLiteral kBlocking = "blocking";

BlockChoice::BlockChoice(FusedOp region, const Blocking &blocking,
                         const ContractionSizes &sizes)
    : region(region), chosen(blocking), blocking(blocking), sizes(sizes) {
  Attribute attr = getChoice(region, kBlocking);
  auto numbers = dyn_cast_if_present<DenseI64ArrayAttr>(attr);
  given = bool(attr);
  if (!given)
    return;
  std::optional<Blocking> resized;
  if (auto read = numbers ? readBlockSizes(numbers) : std::nullopt)
    resized = resizeBlocks(blocking, *read, sizes);
  isPossible = resized.has_value();
  if (resized)
    this->blocking = *resized;
}

static DictionaryAttr write(const BlockSizes &sizes, MLIRContext *context) {
  Builder b(context);
  auto numbers = b.getDenseI64ArrayAttr(sizes.list());
  return b.getDictionaryAttr(b.getNamedAttr(kBlocking, numbers));
}

FailureOr<TaskPlan> BlockChoice::describe(TaskPlan plan) const {
  FusedOp fused = region;
  if (!isPossible)
    return fused.emitOpError("cannot have such blocks of rows, columns and k: ")
           << getChoice(fused, kBlocking);
  plan.plan = write(blocking.getSizes(), fused.getContext());
  for (const BlockSizes &sizes : listBlockSizes(chosen, this->sizes))
    plan.alternatives.push_back(write(sizes, fused.getContext()));
  return plan;
}

// --- Operands

MatrixAccess::Kind getPackedKind(const MatrixAccess &access) {
  if (getConstant(access.kStride) == 1)
    return MatrixAccess::Rows;
  return getConstant(access.laneStride) == 1 ? MatrixAccess::Columns
                                             : MatrixAccess::Elements;
}

Type getComputedType(Value tensor) {
  Type element = getElementTypeOrSelf(tensor);
  return isa<FloatType>(element) && !element.isF64()
             ? Float32Type::get(tensor.getContext())
             : getSignless(element);
}

MatrixAccess traceAccess(const MatrixSide &side) {
  MatrixAccess access;
  Type element = getElementTypeOrSelf(side.tensor);
  access.isUnsigned = element.isUnsignedInteger();
  access.elementType = getSignless(element);
  StridedInput from = traceInput(side.tensor);
  access.input = from.input;
  if (from.input) {
    access.laneStride = from.strides[side.laneAxis];
    access.kStride = from.strides[side.kAxis];
    access.kind = getPackedKind(access);
  } else {
    // What lies next to each other in memory, as far as one can tell.
    access.laneStride = getAffineConstantExpr(side.laneAxis > side.kAxis,
                                              side.tensor.getContext());
  }
  if (access.kind == MatrixAccess::Elements)
    access.elementType = getComputedType(side.tensor);
  return access;
}

/// The batch axes of a side in order: all but those of lanes and k.
static SmallVector<int64_t> getBatchAxes(const MatrixSide &side) {
  SmallVector<int64_t> axes;
  for (int64_t axis = 0; int64_t(axes.size()) < side.batchRank; ++axis)
    if (axis != side.laneAxis && axis != side.kAxis)
      axes.push_back(axis);
  return axes;
}

MatrixSource makeSource(KernelFrame &frame, const MatrixSide &side,
                        BatchIndices indices) {
  MatrixSource source;
  source.offset = [=, &frame](KernelBuilder &b, Value batch) {
    StridedInput from = traceInput(side.tensor);
    auto size = [&](AffineExpr expression) {
      return frame.elements.size(b, frame.loc, expression);
    };
    auto strides = llvm::map_to_vector(getBatchAxes(side), [&](int64_t axis) {
      return size(from.strides[axis]);
    });
    return b.add(size(from.offset), b.linearize(indices(b, batch), strides));
  };
  source.element = [=, &frame](KernelBuilder &b, Value batch, Value lane,
                               Value k) {
    SmallVector<Value> at(side.batchRank + 2);
    for (auto [axis, index] :
         llvm::zip_equal(getBatchAxes(side), indices(b, batch)))
      at[axis] = index;
    at[side.laneAxis] = lane;
    at[side.kAxis] = k;
    return frame.elements.element(b, frame.loc, side.tensor, at);
  };
  return source;
}

void MatrixAccess::setPacking(Packing packing) {
  this->packing = packing;
  elementType = getUnitType(elementType, packing);
  if (packing.group > 1 && kind == InPlace && getConstant(kStride) != 1)
    kind = getConstant(laneStride) == 1 ? Columns : Elements;
}

ElementFunction makeUnits(ElementFunction element, Packing packing) {
  if (packing.group == 1)
    return element;
  return [=](KernelBuilder &b, Value batch, Value lane, Value k) {
    SmallVector<Value> places = {b.mul(k, b.index(packing.group))};
    for (int64_t i = 1; i < packing.group; ++i)
      places.push_back(b.add(places[0], b.index(i)));
    SmallVector<Value> elements;
    for (Value place : places)
      elements.push_back(element(b, batch, lane, place));
    return makeUnit(b, elements);
  };
}

MatrixOperand makeOperand(KernelFrame &frame, const MatrixAccess &access,
                          const MatrixSource &source, int64_t width) {
  if (access.kind == MatrixAccess::Elements) {
    bool lanesAdjacent = getConstant(access.laneStride) == 1;
    return packedElements(makeUnits(source.element, access.packing),
                          access.elementType, lanesAdjacent);
  }
  Memory memory = getMemory(frame, access.input);
  // Rows and panels are of units; places are counted in them.
  bool isOfColumns = access.kind == MatrixAccess::Columns;
  Packing inMemory = isOfColumns ? Packing() : access.packing;
  memory = asUnits(memory, inMemory);
  auto count = [=](KernelBuilder &b, Value elements) {
    return inMemory.group > 1 ? b.div(elements, b.index(inMemory.group))
                              : elements;
  };
  auto offset = [=](KernelBuilder &b, Value batch) {
    return count(b, source.offset(b, batch));
  };
  auto size = [&frame](AffineExpr expression, OpBuilder &b) {
    return frame.elements.size(b, frame.loc, expression);
  };
  if (access.kind == MatrixAccess::Panels) {
    auto view = [=](KernelBuilder &b, Value batch) -> PanelView {
      Value lanes = b.index(width);
      return {memory, offset(b, batch), count(b, source.panelStride),
              b.index(1), lanes};
    };
    return {view, nullptr, nullptr};
  }
  if (access.kind == MatrixAccess::InPlace) {
    auto view = [=](KernelBuilder &b, Value batch) -> PanelView {
      Value lane = count(b, size(access.laneStride, b));
      return {memory, offset(b, batch), b.mul(lane, b.index(width)), lane,
              size(access.kStride, b)};
    };
    return {view, nullptr, nullptr};
  }
  VectorUnit unit = getVectorUnit(frame.options);
  bool isRows = access.kind == MatrixAccess::Rows;
  // Packing moves bits: f16 and bf16 have no vectors everywhere.
  Memory bits = memory;
  if (bits.element.getIntOrFloatBitWidth() == 16)
    bits.element = IntegerType::get(bits.element.getContext(), 16);
  auto pack = [=](KernelBuilder &b, const PackRequest &request) {
    Value stride =
        count(b, size(isRows ? access.laneStride : access.kStride, b));
    MatrixInMemory matrix{bits, offset, stride,
                          isRows ? Packing() : access.packing, source.rows};
    auto operand =
        isRows ? packedRows(matrix, unit) : packedColumns(matrix, unit);
    operand.pack(b, request);
  };
  return {nullptr, pack, access.elementType};
}

// --- Results

void emitResults(KernelBuilder &b, KernelFrame &frame, Value sum,
                 ValueRange indices) {
  defineSum(b, frame, sum, indices);
  // A result may lie in the buffer of an input that another result reads: all
  // elements are read before the first one is stored.
  for (Value yielded : frame.getYields())
    frame.elements.element(b, frame.loc, getStored(frame, yielded), indices);
  for (unsigned i = 0; i < frame.results.size(); ++i)
    storeResult(b, frame, i, indices);
}

/// The inputs of the region that are read at the indices of its results.
static SmallVector<Value> getInputsOfResults(KernelFrame &frame) {
  Operation *kernel = getAnchor(frame.region);
  llvm::SetVector<Value> needed;
  SmallVector<Value> inputs;
  for (Value yielded : frame.getYields())
    needed.insert(getStored(frame, yielded));
  for (size_t i = 0; i < needed.size(); ++i) {
    Operation *op = needed[i].getDefiningOp();
    if (!op)
      inputs.push_back(needed[i]);
    else if (op != kernel && isa<PointwiseOpInterface>(op))
      needed.insert(op->operand_begin(), op->operand_end());
  }
  return inputs;
}

void prefetchResults(KernelBuilder &b, KernelFrame &frame, ValueRange indices,
                     int64_t count) {
  constexpr int64_t lineBytes = 64;
  auto forEachLine = [&](Value tensor, const Buffer &buffer,
                         function_ref<void(Memory, Value)> body) {
    int64_t bytes = getStorageBytes(buffer.getElementType());
    Value at = findPlace(b, frame, tensor, indices);
    at = b.mul(at, b.index(bytes));
    for (int64_t i = 0; i < count * bytes; i += lineBytes)
      body({buffer.getPointer(), b.getI8Type()}, b.add(at, b.index(i)));
  };
  for (Value input : getInputsOfResults(frame))
    forEachLine(input, frame.elements.getBuffer(input),
                [&](Memory from, Value at) {
                  b.prefetch(from, at, KernelBuilder::firstLevel);
                });
  for (auto [yielded, buffer] :
       llvm::zip_equal(frame.getYields(), frame.results))
    forEachLine(yielded, buffer,
                [&](Memory to, Value at) { b.prefetchForStore(to, at); });
}

void addResults(Contraction &contraction, KernelFrame &frame,
                ResultIndices indices) {
  contraction.epilogue = [=, &frame](KernelBuilder &b, Value sum, Value batch,
                                     Value i, Value j) {
    emitResults(b, frame, sum, indices(b, batch, i, j));
  };
  contraction.prefetchResults = [=, &frame](KernelBuilder &b, Value batch,
                                            Value i, Value j, int64_t count) {
    prefetchResults(b, frame, indices(b, batch, i, j), count);
  };
}

} // namespace tcc::cpu
