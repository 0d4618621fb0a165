#include "runtime/package/VerifyMetrics.h"
#include "runtime/package/Verify.h"
#include "tests/runtime/Fixture.h"

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
using format::EntryKind;
using format::MetricRule;

namespace {

/// Packages whose `eval` has two scalars and a vector, and a metric.
class VerifyMetricsTest : public testing::Test {
protected:
  VerifyMetricsTest() {
    builder.inEntry(EntryKind::eval);
    builder.output("a", DType::f64, {});
    builder.output("b", DType::f64, {});
    std::vector<Expr> three;
    three.push_back(constant(3));
    builder.output("c", DType::f64, std::move(three));
    builder.entry(EntryKind::eval).slot_count = 1;
  }

  void add(MetricRule rule, std::vector<uint32_t> sums,
           const std::string &name = "m") {
    auto metric = std::make_unique<format::EvalMetricT>();
    metric->name = name;
    metric->rule = rule;
    metric->sums = std::move(sums);
    builder.tables.metrics.push_back(std::move(metric));
  }
  void plan(const std::string &best) {
    builder.tables.evaluation = std::make_unique<format::EvaluationT>();
    builder.tables.evaluation->best = best;
  }
  Status verify() { return verifyProgram(builder.program(), {}); }

  ProgramBuilder builder;
};

} // namespace

TEST_F(VerifyMetricsTest, TakesWhatIsWhole) {
  add(MetricRule::mean, {0, 1});
  add(MetricRule::f1, {2, 2, 2}, "f1");
  add(MetricRule::recall, {0, 1, 0}, "recall");
  add(MetricRule::table, {2}, "table");
  plan("f1");
  EXPECT_THAT(verify(), succeeds());
}

TEST_F(VerifyMetricsTest, RefusesSumsThatDoNotFit) {
  struct Row {
    MetricRule rule;
    std::vector<uint32_t> sums;
  };
  for (const Row &row : {
           Row{MetricRule::mean, {0}},
           Row{MetricRule::mean, {0, 3}},
           Row{MetricRule::root_mean, {0, 2}},
           Row{MetricRule::exp_mean, {2, 2}},
           Row{MetricRule::f1, {0, 1}},
           Row{MetricRule::precision, {2, 2, 1}},
           Row{MetricRule::table, {}},
           Row{MetricRule(77), {0, 1}},
       }) {
    builder.tables.metrics.clear();
    add(row.rule, row.sums);
    EXPECT_THAT(verify(),
                failsWith(Code::BadData, "metric 0 of 'eval' is bad"));
  }
}

TEST_F(VerifyMetricsTest, RefusesNames) {
  add(MetricRule::mean, {0, 1}, "");
  EXPECT_THAT(verify(), failsWith(Code::BadData, "metric 0 of 'eval' is bad"));
  builder.tables.metrics[0]->name = "m";
  add(MetricRule::mean, {0, 1});
  EXPECT_THAT(verify(), failsWith(Code::BadData, "metric 1 of 'eval' is bad"));
}

TEST_F(VerifyMetricsTest, RefusesPlansByWhatIsNoNumber) {
  add(MetricRule::mean, {0, 1});
  add(MetricRule::table, {2}, "table");
  for (const char *best : {"", "x", "table"}) {
    plan(best);
    EXPECT_THAT(verify(), failsWith(Code::BadData, "no number of 'eval'"));
  }
}

TEST_F(VerifyMetricsTest, RefusesTablesThatAreNone) {
  constexpr int64_t kHuge = int64_t(1) << 62;
  for (int64_t extent : {int64_t(0), int64_t(-1), kHuge}) {
    SCOPED_TRACE(extent);
    std::vector<Expr> shape;
    shape.push_back(constant(extent));
    builder.output(std::to_string(extent), DType::f64, std::move(shape));
    uint32_t last = builder.entry(EntryKind::eval).outputs.size() - 1;
    builder.tables.metrics.clear();
    add(MetricRule::table, {last});
    EXPECT_THAT(verify(),
                failsWith(Code::BadData, "metric 0 of 'eval' is bad"));
  }
}
