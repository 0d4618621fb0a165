#include "runtime/ranks/TreeSum.h"
#include "tests/runtime/Fixture.h"

#include <cmath>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;

namespace {

template <typename T> using Buffers = std::vector<std::vector<T>>;

/// One rank of several whose buffers are all known.
template <typename T> class KnownTransport final : public Transport {
public:
  KnownTransport(Buffers<T> buffers, int rank)
      : buffers(std::move(buffers)), rank(rank) {}

  std::string_view name() const override { return "known"; }
  Status allReduce(const void *, void *, size_t, DType) override {
    return Status(Code::Internal, "this one adds");
  }
  Status reduceScatter(const void *, void *, size_t, DType) override {
    return Status(Code::Internal, "this one adds");
  }
  Status allGather(const void *from, void *to, size_t count, DType) override {
    largest = std::max(largest, count * sizeof(T));
    if (calls++ == failing)
      return Status(Code::Peer, "a rank is gone");
    size_t first = static_cast<const T *>(from) - buffers[rank].data();
    for (size_t other = 0; other < buffers.size(); ++other)
      std::copy_n(buffers[other].data() + first, count,
                  static_cast<T *>(to) + other * count);
    return Status();
  }
  Status broadcast(const void *, void *, size_t, DType, int) override {
    return Status(Code::Internal, "nobody has more than others");
  }
  Status barrier() override { return Status(); }
  void setTimeout(std::chrono::milliseconds) override {}
  void abort() override {}

  Buffers<T> buffers;
  const int rank;
  int calls = 0, failing = -1;
  size_t largest = 0; ///< bytes of a call
};

/// The tree by its definition: in bit-reversed order what has even places comes
/// before what has odd ones, and so on within both.
template <typename T> T addUp(const std::vector<T> &places) {
  if (places.size() == 1)
    return places[0];
  std::vector<T> halves[2];
  for (size_t i = 0; i < places.size(); ++i)
    halves[i % 2].push_back(places[i]);
  return addUp(halves[0]) + addUp(halves[1]);
}

/// Of many magnitudes, so that each order of sums has other bits.
template <typename T> T valueOf(size_t place, size_t i) {
  uint64_t x = (place * 7919 + i + 1) * 0x9e3779b97f4a7c15;
  x ^= x >> 29;
  auto fraction = static_cast<double>(x % 100003) / 100003 - 0.5;
  if (std::is_integral_v<T>)
    return static_cast<T>(x % 1000);
  return static_cast<T>(fraction * std::exp2(static_cast<int>(x >> 60)));
}

template <typename T>
void check(int size, size_t count, DType dtype, int64_t batches) {
  // Each rank has the sum of its own batches.
  Buffers<T> own(size, std::vector<T>(count));
  std::vector<T> expected(count);
  for (size_t i = 0; i < count; ++i) {
    std::vector<T> all;
    for (int64_t place = 0; place < batches; ++place)
      all.push_back(valueOf<T>(place, i));
    expected[i] = addUp(all);
    for (int rank = 0; rank < size; ++rank) {
      std::vector<T> places;
      for (int64_t place = rank; place < batches; place += size)
        places.push_back(all[place]);
      own[rank][i] = addUp(places);
    }
  }
  for (int rank = 0; rank < size; ++rank) {
    KnownTransport<T> transport(own, rank);
    TreeSum tree;
    std::vector<T> &from = transport.buffers[rank], to(count);
    ASSERT_THAT(tree.add(transport, size, from.data(), to.data(), count, dtype),
                succeeds());
    EXPECT_EQ(to, expected);
    EXPECT_EQ(from, own[rank]) << "it is only read";
    EXPECT_LE(transport.largest, TreeSum::kPieceBytes);
    ASSERT_THAT(
        tree.add(transport, size, from.data(), from.data(), count, dtype),
        succeeds());
    EXPECT_EQ(from, expected) << "in place";
  }
}

} // namespace

TEST(TreeSumTest, IsTheTreeOfAllBatches) {
  for (int size : {1, 2, 4, 8})
    for (size_t count : {0, 1, 300}) {
      check<float>(size, count, DType::f32, 16);
      check<double>(size, count, DType::f64, 8);
      check<int32_t>(size, count, DType::i32, 8);
      check<int64_t>(size, count, DType::i64, 8);
    }
}

TEST(TreeSumTest, GathersPieces) {
  constexpr size_t kMost = TreeSum::kPieceBytes / sizeof(float);
  for (size_t count : {kMost, kMost + 1, 2 * kMost + 17})
    check<float>(2, count, DType::f32, 4);
}

/// The test's values tell orders apart: one after the other is another sum.
TEST(TreeSumTest, OrdersDiffer) {
  std::vector<float> all;
  float inOrder = 0;
  for (size_t place = 0; place < 16; ++place) {
    all.push_back(valueOf<float>(place, 0));
    inOrder += all.back();
  }
  EXPECT_NE(addUp(all), inOrder);
}

TEST(TreeSumTest, Refuses) {
  TreeSum tree;
  float value = 1;
  KnownTransport<float> three({{1}, {2}, {3}}, 0);
  EXPECT_THAT(tree.add(three, 3, &value, &value, 1, DType::f32),
              failsWith(Code::Usage, "3 ranks have no tree to add up in"));
  EXPECT_THAT(tree.add(three, 2, &value, &value, 1, DType::f16),
              failsWith(Code::Unsupported, "ranks add up no f16"));
  EXPECT_EQ(three.calls, 0);
  KnownTransport<float> lost({{1}, {2}}, 0);
  lost.failing = 0;
  EXPECT_THAT(tree.add(lost, 2, lost.buffers[0].data(), &value, 1, DType::f32),
              failsWith(Code::Peer, "a rank is gone"));
}
