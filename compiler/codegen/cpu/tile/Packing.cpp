#include "compiler/codegen/cpu/tile/Packing.h"
#include "compiler/codegen/cpu/tile/PackedUnit.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <numeric>

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::cpu;

namespace {

/// One panel of a request; `count` of its lanes exist.
struct Panel {
  const PackRequest &request;
  Value first, count, offset;

  Value position(KernelBuilder &b, Value k, Value lane) const {
    if (request.asRows)
      return b.add(offset, b.add(b.mul(lane, b.index(request.laneStride)), k));
    Value row = b.mul(k, b.index(request.width));
    return b.add(offset, b.add(row, lane));
  }
};

} // namespace

static void forEachPanel(KernelBuilder &b, const PackRequest &request,
                         function_ref<void(const Panel &)> body) {
  Value width = b.index(request.width);
  b.loop(b.ceilDiv(request.count, request.width), [&](Value number) {
    Value lane = b.mul(number, width);
    body({request, b.add(request.first, lane),
          b.min(b.sub(request.count, lane), width),
          b.mul(number, b.index(request.panelSize))});
  });
}

static void packElementsOf(KernelBuilder &b, const Panel &panel,
                           const ElementFunction &element, bool lanesAdjacent) {
  const PackRequest &request = panel.request;
  auto copy = [&](Value k, Value lane) {
    Value value = element(b, request.batch, b.add(panel.first, lane),
                          b.add(request.k, k));
    b.store(value, request.into, panel.position(b, k, lane));
  };
  auto copyLanes = [&](Value count) {
    b.loop(request.depth,
           [&](Value k) { b.loop(count, [&](Value lane) { copy(k, lane); }); });
  };
  if (!lanesAdjacent)
    return b.loop(panel.count, [&](Value lane) {
      b.loop(request.depth, [&](Value k) { copy(k, lane); });
    });
  // Full panels have a loop of known length, which vectorises.
  Value width = b.index(request.width);
  b.when(
      b.equal(panel.count, width), [&] { copyLanes(width); },
      [&] { copyLanes(panel.count); });
}

MatrixOperand tcc::cpu::packedElements(ElementFunction element, Type type,
                                       bool lanesAdjacent) {
  auto pack = [=](KernelBuilder &b, const PackRequest &request) {
    forEachPanel(b, request, [&](const Panel &panel) {
      packElementsOf(b, panel, element, lanesAdjacent);
    });
  };
  return {nullptr, pack, type};
}

/// Each round riffles the first
/// half of the elements into the second, which turns the bits of an element's
/// position by one, until those of the lane are the lowest.
void tcc::cpu::transpose(KernelBuilder &b, SmallVectorImpl<Value> &vectors) {
  size_t count = vectors.size();
  int64_t size = cast<VectorType>(vectors[0].getType()).getNumElements();
  SmallVector<int64_t> low, high;
  for (int64_t i = 0; i < size; ++i) {
    low.push_back(i / 2 + i % 2 * size);
    high.push_back(low.back() + size / 2);
  }
  for (size_t round = 1; round < count; round *= 2) {
    SmallVector<Value> riffled;
    for (size_t i = 0; i < count / 2; ++i)
      for (ArrayRef<int64_t> mask : {ArrayRef(low), ArrayRef(high)})
        riffled.push_back(b.create<vector::ShuffleOp>(
            vectors[i], vectors[i + count / 2], mask));
    vectors.assign(riffled);
  }
}

/// Lanes [first, first + count) of a panel, whose rows start at `starts`.
static void packRowGroup(KernelBuilder &b, const Panel &panel,
                         const MatrixInMemory &matrix, int64_t first,
                         ArrayRef<Value> starts) {
  const PackRequest &request = panel.request;
  int64_t step = starts.size();
  Value stride = b.index(step);
  Value whole = b.mul(b.div(request.depth, stride), stride);
  b.loop(b.index(0), whole, stride, [&](Value k) {
    SmallVector<Value> vectors;
    for (Value start : starts)
      vectors.push_back(b.loadVector(matrix.base, b.add(start, k), step));
    transpose(b, vectors);
    for (auto [i, value] : llvm::enumerate(vectors))
      b.store(value, request.into,
              panel.position(b, b.add(k, b.index(i)), b.index(first)));
  });
  b.loop(whole, request.depth, b.index(1), [&](Value k) {
    for (auto [i, start] : llvm::enumerate(starts)) {
      Value value = b.load(matrix.base, b.add(start, k));
      b.store(value, request.into, panel.position(b, k, b.index(first + i)));
    }
  });
}

static void packRowsOf(KernelBuilder &b, const Panel &panel,
                       const MatrixInMemory &matrix, VectorUnit unit) {
  const PackRequest &request = panel.request;
  assert(!request.asRows && "rows are read in place");
  int64_t step = unit.lanes(matrix.base.element);
  Value start = b.add(matrix.offset(b, request.batch), request.k);
  Value lastLane = b.sub(panel.count, b.index(1));
  for (int64_t first = 0; first < request.width; first += step) {
    auto emit = [&] {
      SmallVector<Value> starts;
      for (int64_t i = first; i < first + step; ++i) {
        Value lane = b.add(panel.first, b.min(b.index(i), lastLane));
        starts.push_back(b.add(start, b.mul(lane, matrix.stride)));
      }
      packRowGroup(b, panel, matrix, first, starts);
    };
    b.when(b.less(b.index(first), panel.count), emit);
  }
}

MatrixOperand tcc::cpu::packedRows(const MatrixInMemory &matrix,
                                   VectorUnit unit) {
  auto pack = [=](KernelBuilder &b, const PackRequest &request) {
    forEachPanel(b, request, [&](const Panel &panel) {
      packRowsOf(b, panel, matrix, unit);
    });
  };
  return {nullptr, pack, matrix.base.element};
}

/// Elements of row `k`, from `lane` on, those of a mask if there is one.
static Value loadLanes(KernelBuilder &b, const MatrixInMemory &matrix, Value k,
                       Value lane, int64_t lanes, Value mask = {}) {
  Value none = b.zero(VectorType::get(lanes, matrix.base.element));
  auto load = [&](Value k) {
    Value at = b.add(b.mul(k, matrix.stride), lane);
    return mask ? b.loadMasked(matrix.base, at, mask, none)
                : b.loadVector(matrix.base, at, lanes);
  };
  auto loadIfAny = [&](Value k) -> Value {
    if (!matrix.rows)
      return load(k);
    Value last = b.sub(matrix.rows, b.index(1));
    Value x = load(b.min(k, last));
    return b.create<arith::SelectOp>(b.less(last, k), none, x);
  };
  int64_t group = matrix.packing.group;
  if (group == 1)
    return load(k);
  Value first = b.mul(k, b.index(group));
  SmallVector<Value> rows;
  for (int64_t i = 0; i < group; ++i)
    rows.push_back(i ? loadIfAny(b.add(first, b.index(i))) : load(first));
  return interleave(b, rows);
}

/// Powers of two whose sum is `width`, or more if the last one may be too long.
static SmallVector<int64_t> splitWidth(int64_t width, int64_t lanes,
                                       bool mayExceed) {
  SmallVector<int64_t> parts;
  for (int64_t left = width; left > 0; left -= parts.back()) {
    uint64_t most = left;
    parts.push_back(std::min<int64_t>(
        lanes, mayExceed ? llvm::bit_ceil(most) : llvm::bit_floor(most)));
  }
  return parts;
}

namespace {

/// Copies rows of k, which lie in memory as they do in panels but for strides.
class ColumnPacker {
public:
  ColumnPacker(KernelBuilder &b, const PackRequest &request,
               const MatrixInMemory &matrix, VectorUnit unit)
      : b(b), request(request), matrix(matrix),
        lanes(unit.lanes(request.into.element)),
        start(b.add(matrix.offset(b, request.batch), request.first)) {}
  void emit();

private:
  KernelBuilder &b;
  const PackRequest &request;
  const MatrixInMemory &matrix;
  int64_t lanes;
  Value start;

  bool canExceed(ArrayRef<int64_t> parts, int64_t lanes);
  void copy(Value k, Value panel, Value lane, int64_t count);
  void prefetch(Value k, Value panel);
  void copyPanels(Value k, int64_t rows, Value panels, ArrayRef<int64_t> parts);
  void copyRest(Value k, int64_t rows);
};

} // namespace

/// `count` lanes from `lane` of a panel on.
void ColumnPacker::copy(Value k, Value panel, Value lane, int64_t count) {
  Value width = b.index(request.width);
  Value from = b.add(start, b.add(b.mul(panel, width), lane));
  Value to = b.add(b.mul(panel, b.index(request.panelSize)),
                   b.add(b.mul(k, width), lane));
  Value row = b.add(request.k, k);
  b.store(loadLanes(b, matrix, row, from, count), request.into, to);
}

/// A panel's lanes of a row that will be copied soon: rows are short, and far
/// from each other.
void ColumnPacker::prefetch(Value k, Value panel) {
  constexpr int64_t lineBytes = 64;
  int64_t line = lineBytes / bytesOf(matrix.base.element);
  Value row = b.mul(b.add(request.k, k), b.index(matrix.packing.group));
  Value from = b.add(b.mul(row, matrix.stride),
                     b.add(start, b.mul(panel, b.index(request.width))));
  for (int64_t lane = 0; lane < request.width; lane += line)
    b.prefetch(matrix.base, b.add(from, b.index(lane)),
               KernelBuilder::firstLevel);
}

void ColumnPacker::copyPanels(Value k, int64_t rows, Value panels,
                              ArrayRef<int64_t> parts) {
  b.loop(panels, [&](Value panel) {
    for (int64_t row = 0; row < rows; ++row) {
      if (rows > 1)
        prefetch(b.add(k, b.index(rows + row)), panel);
      int64_t lane = 0;
      for (int64_t part : parts) {
        copy(b.add(k, b.index(row)), panel, b.index(lane), part);
        lane += part;
      }
    }
  });
}

/// The lanes of the last panel, if some of it do not exist.
void ColumnPacker::copyRest(Value k, int64_t rows) {
  Value width = b.index(request.width);
  Value whole = b.div(request.count, width);
  auto forEachRow = [&](Value lane, int64_t count) {
    for (int64_t row = 0; row < rows; ++row)
      copy(b.add(k, b.index(row)), whole, lane, count);
  };
  Value rest = b.sub(request.count, b.mul(whole, width));
  Value step = b.index(std::min(lanes, request.width));
  Value vectors = b.mul(b.div(rest, step), step);
  if (lanes < request.width)
    b.loop(b.index(0), vectors, step,
           [&](Value lane) { forEachRow(lane, lanes); });
  b.loop(vectors, rest, b.index(1), [&](Value lane) { forEachRow(lane, 1); });
}

/// Whether as much as `parts` may be read where `lanes` exist: what lies beyond
/// them belongs to the next row.
bool ColumnPacker::canExceed(ArrayRef<int64_t> parts, int64_t lanes) {
  int64_t excess = std::accumulate(parts.begin(), parts.end(), -lanes);
  std::optional<int64_t> stride = constantOf(matrix.stride);
  return stride && *stride >= excess;
}

/// Several rows at once fill lines of a panel before the next panel's turn:
/// panels of 512 rows or so are multiples of 4 KiB apart, where a line of each
/// would be too many for the first-level cache. But for the last row, one
/// vector serves a panel that is no power of two wide, in place of several, and
/// whole ones serve the lanes of the last panel: what is written beyond a
/// panel's lanes is written again with the next row.
void ColumnPacker::emit() {
  constexpr int64_t group = 8;
  auto exact = splitWidth(request.width, lanes, /*mayExceed=*/false);
  auto parts = splitWidth(request.width, lanes, /*mayExceed=*/true);
  Value one = b.index(1), step = b.index(group), width = b.index(request.width);
  Value others = b.sub(b.max(request.depth, one), one);
  Value groups = b.mul(b.div(others, step), step);
  Value whole = b.div(request.count, width);
  if (!canExceed(parts, request.width))
    parts = exact;
  bool coversRest = canExceed(parts, 0);
  Value panels = coversRest ? b.ceilDiv(request.count, request.width) : whole;
  b.loop(b.index(0), groups, step, [&](Value k) {
    copyPanels(k, group, panels, parts);
    if (!coversRest)
      copyRest(k, group);
  });
  b.loop(groups, request.depth, one, [&](Value k) {
    copyPanels(k, 1, whole, exact);
    copyRest(k, 1);
  });
}

/// Lanes of a panel from `first` on as rows: blocks of as many units of k as a
/// vector has lanes are transposed in registers.
static void packColumnGroup(KernelBuilder &b, const Panel &panel,
                            const MatrixInMemory &matrix, int64_t first,
                            int64_t lanes) {
  const PackRequest &request = panel.request;
  Value start = b.add(matrix.offset(b, request.batch),
                      b.add(panel.first, b.index(first)));
  Value exist = b.lanesBelow(lanes, b.sub(panel.count, b.index(first)));
  Value step = b.index(lanes), lastRow = b.sub(request.depth, b.index(1));
  Value whole = b.mul(b.div(request.depth, step), step);
  auto copy = [&](Value k, Value mask) {
    SmallVector<Value> vectors;
    for (int64_t i = 0; i < lanes; ++i) {
      Value row = b.add(k, b.index(i));
      row = b.add(request.k, mask ? b.min(row, lastRow) : row);
      vectors.push_back(loadLanes(b, matrix, row, start, lanes, exist));
    }
    transpose(b, vectors);
    for (auto [i, value] : llvm::enumerate(vectors)) {
      Value at = panel.position(b, k, b.index(first + i));
      if (mask)
        b.storeMasked(value, request.into, at, mask);
      else
        b.store(value, request.into, at);
    }
  };
  b.loop(b.index(0), whole, step, [&](Value k) { copy(k, nullptr); });
  Value rest = b.sub(request.depth, whole);
  b.when(b.less(whole, request.depth),
         [&] { copy(whole, b.lanesBelow(lanes, rest)); });
}

static void packColumnsAsRows(KernelBuilder &b, const PackRequest &request,
                              const MatrixInMemory &matrix, VectorUnit unit) {
  int64_t lanes = unit.lanes(request.into.element);
  forEachPanel(b, request, [&](const Panel &panel) {
    for (int64_t first = 0; first < request.width; first += lanes)
      b.when(b.less(b.index(first), panel.count),
             [&] { packColumnGroup(b, panel, matrix, first, lanes); });
  });
}

MatrixOperand tcc::cpu::packedColumns(const MatrixInMemory &matrix,
                                      VectorUnit unit) {
  auto pack = [=](KernelBuilder &b, const PackRequest &request) {
    if (request.asRows)
      packColumnsAsRows(b, request, matrix, unit);
    else
      ColumnPacker(b, request, matrix, unit).emit();
  };
  return {nullptr, pack, matrix.base.element};
}
