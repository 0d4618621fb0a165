#include "compiler/codegen/cuda/kernels/SharedTile.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace tcc::cuda {

/// Along the steps a warp has eight of them for four lanes each.
SharedTile::Place SharedTile::split(KernelBuilder &b, Value number,
                                    bool stepsAreAdjacent) const {
  Value width = b.index(lanes);
  if (!stepsAreAdjacent)
    return {b.rem(number, width), b.div(number, width)};
  constexpr int64_t kSteps = 8;
  Value count = b.index(kSteps), group = b.div(number, count);
  Value first = b.mul(b.div(group, width), count);
  return {b.rem(group, width), b.add(first, b.rem(number, count))};
}

Value SharedTile::getPosition(KernelBuilder &b, Place place) const {
  Value row = b.mul(place.step, b.index(getPitch(lanes)));
  return b.add(b.add(start, row), place.lane);
}

void SharedTile::store(KernelBuilder &b, Value element, Place place) const {
  memory.store(b, b.getLoc(), element, getPosition(b, place));
}

SmallVector<Value> SharedTile::read(KernelBuilder &b, Place first,
                                    int64_t count) const {
  Value vector = memory.loadVector(b, b.getLoc(), getPosition(b, first), count);
  SmallVector<Value> elements;
  for (int64_t i = 0; i < count; ++i)
    elements.push_back(b.create<vector::ExtractOp>(vector, i));
  return elements;
}

void SharedTile::fill(KernelBuilder &b, Value thread, int64_t threads,
                      bool stepsAreAdjacent, ElementFunction element) const {
  int64_t count = lanes * steps;
  auto getPlace = [&](int64_t i) {
    return split(b, b.add(thread, b.index(i)), stepsAreAdjacent);
  };
  SmallVector<std::pair<Place, Value>> elements;
  auto storeAll = [&] {
    for (auto &[place, x] : elements)
      store(b, x, place);
    elements.clear();
  };
  constexpr size_t kAtOnce = 8;
  for (int64_t i = 0; i + threads <= count; i += threads) {
    Place place = getPlace(i);
    elements.emplace_back(place, element(place.lane, place.step));
    if (elements.size() == kAtOnce)
      storeAll();
  }
  storeAll();
  int64_t rest = count % threads;
  if (rest == 0)
    return;
  b.when(b.less(thread, b.index(rest)), [&] {
    Place place = getPlace(count - rest);
    store(b, element(place.lane, place.step), place);
  });
}

void addProducts(KernelBuilder &b, ValueRange x, ValueRange y,
                 MutableArrayRef<Value> sums) {
  for (auto [i, sum] : llvm::enumerate(sums))
    sum = b.multiplyAdd(x[i / y.size()], y[i % y.size()], sum);
}

} // namespace tcc::cuda
