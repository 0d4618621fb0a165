#include "runtime/package/SizeExpr.h"
#include "tests/runtime/Fixture.h"

#include <random>

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

TEST(SizeExpr, KnowsDivisors) {
  auto divisorOf = [](std::vector<Instruction> code) {
    return knownDivisor(*Serialized(std::move(code)));
  };
  Instruction slot = {SizeOp::slot, 0}, minus12 = {SizeOp::constant, -12};
  Instruction three = {SizeOp::constant, 3}, mul = {SizeOp::mul, 0};
  EXPECT_EQ(divisorOf({slot}), 1u);
  EXPECT_EQ(divisorOf({minus12}), 12u);
  EXPECT_EQ(divisorOf({slot, minus12, mul}), 12u);
  EXPECT_EQ(divisorOf({slot, minus12, mul, three, {SizeOp::ceil_div, 0}}), 4u);
  EXPECT_EQ(divisorOf({slot, three, {SizeOp::floor_div, 0}}), 1u);
}

/// Every value of random code is a multiple of what is known of it.
TEST(SizeExpr, DivisorsDivide) {
  std::mt19937 random(6);
  int known = 0;
  for (int i = 0; i < 3000; ++i) {
    std::vector<Instruction> code;
    for (int depth = 0; depth != 1 || code.size() < 9;) {
      bool isLeaf = depth < 2 || (depth < 5 && random() % 2);
      depth += isLeaf ? 1 : -1;
      SizeOp op = isLeaf ? SizeOp(random() % 2) : SizeOp(2 + random() % 8);
      int64_t constant = static_cast<int64_t>(random() % 97) - 32;
      code.push_back({op, op == SizeOp::slot ? 0 : constant});
    }
    Serialized expr(std::move(code));
    ASSERT_TRUE(isWellFormed(*expr, 1));
    int64_t divisor = static_cast<int64_t>(knownDivisor(*expr)), value = 0;
    known += divisor != 1;
    for (int64_t slot : {-7, 0, 1, 12, 1000})
      if (evaluate(*expr, &slot, value))
        EXPECT_EQ(divisor ? value % divisor : value, 0);
  }
  EXPECT_GT(known, 100);
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
