#include "compiler/codegen/cpu/Packing.h"
#include "compiler/codegen/cpu/PairProduct.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <numeric>

using namespace mlir;
using namespace tcc::cpu;

namespace {

/// One panel of a request; `count` of its lanes exist.
struct Panel {
  const PackRequest &request;
  Value first, count, offset;

  Value position(KernelBuilder &b, Value k, Value lane) const {
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

/// Elements of row `k`, from `lane` on.
static Value loadLanes(KernelBuilder &b, const MatrixInMemory &matrix, Value k,
                       Value lane, int64_t lanes) {
  auto load = [&](Value k) {
    Value at = b.add(b.mul(k, matrix.stride), lane);
    return b.loadVector(matrix.base, at, lanes);
  };
  if (!matrix.isPaired)
    return load(k);
  Value low = b.mul(k, b.index(2));
  return interleave(b, load(low), load(b.add(low, b.index(1))));
}

static void packColumnsOf(KernelBuilder &b, const PackRequest &request,
                          const MatrixInMemory &matrix, VectorUnit unit) {
  // Vectors lie within a panel.
  int64_t lanes = unit.lanes(request.into.element);
  lanes =
      lanes < request.width ? std::gcd(lanes, request.width) : request.width;
  Value start = b.add(matrix.offset(b, request.batch), request.first);
  Value width = b.index(request.width), step = b.index(lanes);
  Value whole = b.mul(b.div(request.count, step), step);
  auto place = [&](Value k, Value lane) {
    Value panel = b.mul(b.div(lane, width), b.index(request.panelSize));
    return b.add(b.add(panel, b.mul(k, width)), b.rem(lane, width));
  };
  b.loop(request.depth, [&](Value k) {
    Value row = b.add(request.k, k);
    auto copy = [&](Value lane, int64_t lanes) {
      Value value = loadLanes(b, matrix, row, b.add(start, lane), lanes);
      b.store(value, request.into, place(k, lane));
    };
    b.loop(b.index(0), whole, step, [&](Value lane) { copy(lane, lanes); });
    b.loop(whole, request.count, b.index(1),
           [&](Value lane) { copy(lane, 1); });
  });
}

MatrixOperand tcc::cpu::packedColumns(const MatrixInMemory &matrix,
                                      VectorUnit unit) {
  auto pack = [=](KernelBuilder &b, const PackRequest &request) {
    packColumnsOf(b, request, matrix, unit);
  };
  return {nullptr, pack, matrix.base.element};
}
