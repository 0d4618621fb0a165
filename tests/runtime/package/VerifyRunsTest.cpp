// What a package says for whoever runs its training: results of kernels,
// tensors of the model's file, losses that jump.

#include "runtime/package/Verify.h"
#include "tests/runtime/Fixture.h"

#include <cmath>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;

static Status verify(ProgramBuilder &builder) {
  return verifyProgram(builder.program(), {});
}

TEST(VerifyRuns, RefusesResultsThatNoLaunchHas) {
  ProgramBuilder builder = addOneProgram();
  auto &results = builder.tables.kernels[0]->results;
  results = {DType::f32};
  EXPECT_THAT(verify(builder), succeeds());
  results = {DType(99)};
  EXPECT_THAT(verify(builder),
              failsWith(Code::BadData, "has a result of no known type"));
  results.assign(9, DType::f32);
  EXPECT_THAT(verify(builder),
              failsWith(Code::BadData, "lacks a buffer for a result"));
}

TEST(VerifyRuns, RefusesStoredTensorsOfNoVariable) {
  ProgramBuilder builder = addOneProgram();
  builder.variable("v", DType::f32, {2});
  builder.tables.stored_tensors.push_back(
      std::make_unique<format::StoredTensorT>());
  format::StoredTensorT &tensor = *builder.tables.stored_tensors[0];
  tensor.name = "t";
  EXPECT_THAT(verify(builder), succeeds());
  tensor.transposed = true;
  EXPECT_THAT(
      verify(builder),
      failsWith(Code::BadData, "'t' is the transpose of what is no matrix"));
  tensor.variable = 1;
  EXPECT_THAT(verify(builder),
              failsWith(Code::BadData, "'t' has an unknown variable"));
}

TEST(VerifyRuns, RefusesSpikesThatAreNoNumbers) {
  ProgramBuilder builder = addOneProgram();
  builder.tables.spikes = std::make_unique<format::SpikesT>();
  format::SpikesT &spikes = *builder.tables.spikes;
  for (auto [z, every] : {std::pair<double, uint64_t>(-1, 1),
                          {NAN, 1},
                          {1, 0},
                          {1, UINT64_MAX}}) {
    spikes.z = z;
    spikes.rollback_every = every;
    EXPECT_THAT(verify(builder),
                failsWith(Code::BadData, "no number of deviations"));
  }
  spikes.rollback_every = INT64_MAX;
  EXPECT_THAT(verify(builder), succeeds());
}
