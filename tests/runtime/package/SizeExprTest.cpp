#include "runtime/package/SizeExpr.h"
#include "tests/runtime/Fixture.h"

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
using format::SizeOp;

namespace {

/// A serialized expression and the buffer that holds it.
class Serialized {
public:
  explicit Serialized(std::vector<Instruction> instructions) {
    auto object = code(std::move(instructions));
    builder.Finish(format::SizeExpr::Pack(builder, object.get()));
  }
  const format::SizeExpr &operator*() const {
    return *flatbuffers::GetRoot<format::SizeExpr>(builder.GetBufferPointer());
  }

private:
  flatbuffers::FlatBufferBuilder builder;
};

int64_t valueOf(SizeOp op, int64_t a, int64_t b) {
  Serialized expr({{SizeOp::constant, a}, {SizeOp::constant, b}, {op, 0}});
  int64_t value = 0;
  EXPECT_TRUE(isWellFormed(*expr, 0));
  EXPECT_TRUE(evaluate(*expr, nullptr, value));
  return value;
}

bool fails(SizeOp op, int64_t a, int64_t b) {
  Serialized expr({{SizeOp::constant, a}, {SizeOp::constant, b}, {op, 0}});
  int64_t value = 0;
  return !evaluate(*expr, nullptr, value);
}

} // namespace

TEST(SizeExpr, Arithmetic) {
  EXPECT_EQ(valueOf(SizeOp::add, 3, 4), 7);
  EXPECT_EQ(valueOf(SizeOp::sub, 3, 4), -1);
  EXPECT_EQ(valueOf(SizeOp::mul, -3, 4), -12);
  EXPECT_EQ(valueOf(SizeOp::min, 3, 4), 3);
  EXPECT_EQ(valueOf(SizeOp::max, 3, 4), 4);
}

TEST(SizeExpr, DivisionRoundsAsItsNameSays) {
  EXPECT_EQ(valueOf(SizeOp::floor_div, 7, 2), 3);
  EXPECT_EQ(valueOf(SizeOp::floor_div, -7, 2), -4);
  EXPECT_EQ(valueOf(SizeOp::floor_div, 7, -2), -4);
  EXPECT_EQ(valueOf(SizeOp::floor_div, -8, 2), -4);
  EXPECT_EQ(valueOf(SizeOp::ceil_div, 7, 2), 4);
  EXPECT_EQ(valueOf(SizeOp::ceil_div, -7, 2), -3);
  EXPECT_EQ(valueOf(SizeOp::ceil_div, 8, 2), 4);
  EXPECT_EQ(valueOf(SizeOp::mod, -7, 2), 1);
  EXPECT_EQ(valueOf(SizeOp::mod, 7, -2), -1);
}

TEST(SizeExpr, OverflowAndDivisionByZeroFail) {
  EXPECT_TRUE(fails(SizeOp::add, INT64_MAX, 1));
  EXPECT_TRUE(fails(SizeOp::mul, INT64_MAX, 2));
  EXPECT_TRUE(fails(SizeOp::sub, INT64_MIN, 1));
  EXPECT_TRUE(fails(SizeOp::floor_div, 1, 0));
  EXPECT_TRUE(fails(SizeOp::mod, 1, 0));
  EXPECT_TRUE(fails(SizeOp::ceil_div, INT64_MIN, -1));
}

TEST(SizeExpr, ReadsSlots) {
  // (s0 + 2) * s1
  Serialized expr({{SizeOp::slot, 0},
                   {SizeOp::constant, 2},
                   {SizeOp::add, 0},
                   {SizeOp::slot, 1},
                   {SizeOp::mul, 0}});
  int64_t slots[] = {5, 3}, value = 0;
  EXPECT_TRUE(isWellFormed(*expr, 2));
  EXPECT_FALSE(isWellFormed(*expr, 1));
  EXPECT_TRUE(evaluate(*expr, slots, value));
  EXPECT_EQ(value, 21);
  EXPECT_TRUE(readsOnlySlotsBelow(*expr, 2));
  EXPECT_FALSE(readsOnlySlotsBelow(*expr, 1));
  EXPECT_EQ(slotOf(*expr), -1);
  EXPECT_EQ(slotOf(*Serialized({{SizeOp::slot, 1}})), 1);
}

TEST(SizeExpr, RefusesMalformedCode) {
  EXPECT_FALSE(isWellFormed(*Serialized({}), 4));
  EXPECT_FALSE(isWellFormed(*Serialized({{SizeOp::add, 0}}), 4));
  EXPECT_FALSE(isWellFormed(
      *Serialized({{SizeOp::constant, 1}, {SizeOp::constant, 1}}), 4));
  EXPECT_FALSE(isWellFormed(*Serialized({{SizeOp::slot, -1}}), 4));
  EXPECT_FALSE(isWellFormed(*Serialized({{SizeOp(200), 0}}), 4));
  std::vector<Instruction> deep(kMaxSizeDepth + 1, {SizeOp::constant, 1});
  deep.resize(2 * kMaxSizeDepth + 1, {SizeOp::add, 0});
  EXPECT_FALSE(isWellFormed(*Serialized(deep), 4));
}
