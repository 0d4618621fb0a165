#include "runtime/executor/Context.h"
#include "runtime/executor/DLPack.h"
#include "tests/runtime/Allocations.h"
#include "tests/runtime/Fixture.h"

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
using format::StorageClass;

TEST(Context, ShapesTellTheDimensions) {
  ProgramBuilder builder = addOneProgram();
  auto context = makeContext(builder);
  for (int64_t batch : {1, 8, 3}) {
    std::vector<float> x(batch * 4, 1);
    ASSERT_THAT(bind(*context, 0, x, {batch, 4}), succeeds());
    ASSERT_THAT(context->run(), succeeds());
    EXPECT_EQ(context->output(0).shape[0], batch);
    EXPECT_EQ(floatsOf(context->output(0)), std::vector<float>(batch * 4, 2));
  }
}

TEST(Context, ReadsAndWritesTheCallersMemory) {
  ProgramBuilder builder = addOneProgram();
  auto context = makeContext(builder);
  std::vector<float> x(4, 1), y(4);
  ASSERT_THAT(bind(*context, 0, x, {1, 4}), succeeds());
  ASSERT_THAT(context->bindOutput(0, y.data(), 16), succeeds());
  ASSERT_THAT(context->run(), succeeds());
  EXPECT_EQ(y, std::vector<float>(4, 2));
  EXPECT_EQ(context->output(0).data, y.data());
  x.assign(4, 5);
  ASSERT_THAT(context->run(), succeeds());
  EXPECT_EQ(y, std::vector<float>(4, 6));
}

TEST(Context, RefusesWhatDoesNotFit) {
  ProgramBuilder builder = addOneProgram();
  auto context = makeContext(builder);
  std::vector<float> x(100);
  EXPECT_THAT(context->run(), failsWith(Code::Usage, "'x' is not bound"));
  EXPECT_THAT(bind(*context, 7, x, {1, 4}),
              failsWith(Code::Usage, "no input 7"));
  EXPECT_THAT(bind(*context, 0, x, {1, 4}, DType::f64),
              failsWith(Code::Usage, "'x' is f64, expected f32"));
  EXPECT_THAT(bind(*context, 0, x, {4}),
              failsWith(Code::Usage, "'x' is 4, expected batchx4"));
  EXPECT_THAT(bind(*context, 0, x, {-1, 4}),
              failsWith(Code::Usage, "bad shape"));
  auto odd = reinterpret_cast<float *>(reinterpret_cast<char *>(x.data()) + 1);
  std::vector<int64_t> shape = {1, 4};
  EXPECT_THAT(context->bindInput(0, {odd, DType::f32, shape}),
              failsWith(Code::Usage, "aligned"));
  ASSERT_THAT(bind(*context, 0, x, {1, 5}), succeeds());
  EXPECT_THAT(context->run(), failsWith(Code::Usage, "axis 1 is 5, not 4"));
  ASSERT_THAT(bind(*context, 0, x, {9, 4}), succeeds());
  EXPECT_THAT(context->run(),
              failsWith(Code::Usage, "'batch' is 9, compiled for 1..8"));
  ASSERT_THAT(bind(*context, 0, x, {2, 4}), succeeds());
  ASSERT_THAT(context->bindOutput(0, x.data(), 16), succeeds());
  EXPECT_THAT(context->run(), failsWith(Code::Usage, "needs 32"));
  EXPECT_THAT(context->setDim("beam", 1),
              failsWith(Code::Usage, "no dimension 'beam'"));
  ASSERT_THAT(context->setDim("batch", 3), succeeds());
  EXPECT_THAT(context->run(), failsWith(Code::Usage, "axis 0 is 2, not 3"));
}

TEST(Context, ShapesOfInputsFollowFromDimensions) {
  ProgramBuilder builder = addOneProgram();
  auto context = makeContext(builder);
  EXPECT_THAT(context->inputShape(0).takeStatus(),
              failsWith(Code::Usage, "'batch' is not bound"));
  ASSERT_THAT(context->setDim("batch", 5), succeeds());
  EXPECT_EQ(unwrap(context->inputShape(0)), (std::vector<int64_t>{5, 4}));
}

TEST(Context, ShapesOfInputsFollowFromBoundOnes) {
  ProgramBuilder builder = addOneProgram();
  std::vector<Expr> shape;
  shape.push_back(slot(0));
  uint32_t other = builder.input("other", DType::f32, std::move(shape));
  auto context = makeContext(builder);
  std::vector<float> x(12);
  ASSERT_THAT(bind(*context, 0, x, {3, 4}), succeeds());
  EXPECT_EQ(unwrap(context->inputShape(other)), std::vector<int64_t>{3});
}

TEST(Context, ChecksFixedInputs) {
  ProgramBuilder builder = addOneProgram();
  uint32_t rate = builder.input("rate", DType::i32, {});
  builder.entry().inputs[rate]->fixed = {0x80, 0x3e, 0, 0}; // 16000
  auto context = makeContext(builder);
  std::vector<float> x(4);
  std::vector<int32_t> good = {16000}, bad = {8000};
  ASSERT_THAT(bind(*context, 0, x, {1, 4}), succeeds());
  EXPECT_THAT(context->run(), succeeds());
  ASSERT_THAT(bind(*context, rate, good, {}, DType::i32), succeeds());
  EXPECT_THAT(context->run(), succeeds());
  ASSERT_THAT(bind(*context, rate, bad, {}, DType::i32), succeeds());
  EXPECT_THAT(context->run(), failsWith(Code::Usage, "'rate' differs"));
}

/// state' = state + 1 over two floats.
static ProgramBuilder stateProgram(bool inPlace) {
  ProgramBuilder builder;
  std::vector<Expr> shape, same, sizes;
  shape.push_back(constant(2));
  same.push_back(constant(2));
  sizes.push_back(constant(2));
  sizes.push_back(constant(2));
  builder.input("h", DType::f32, std::move(shape));
  builder.output("hn", DType::f32, std::move(same));
  builder.state(0, 0);
  uint32_t from = builder.buffer(StorageClass::state, 0, 8);
  uint32_t to = builder.buffer(StorageClass::state, 0, 8);
  builder.entry().buffers[to]->next = true;
  builder.entry().buffers[to]->in_place = inPlace;
  builder.launch("add_one", {from, to}, std::move(sizes), constant(1));
  return builder;
}

TEST(Context, StatesLiveBetweenRuns) {
  for (bool inPlace : {false, true}) {
    ProgramBuilder builder = stateProgram(inPlace);
    auto context = makeContext(builder);
    for (float run = 1; run <= 10; ++run) {
      ASSERT_THAT(context->run(), succeeds());
      EXPECT_EQ(floatsOf(context->output(0)), (std::vector<float>{run, run}));
    }
    std::vector<float> first = {100, 200}, result(2);
    ASSERT_THAT(bind(*context, 0, first, {2}), succeeds());
    ASSERT_THAT(context->bindOutput(0, result.data(), 8), succeeds());
    ASSERT_THAT(context->run(), succeeds());
    ASSERT_THAT(context->run(), succeeds());
    EXPECT_EQ(result, (std::vector<float>{102, 202}));
    ASSERT_THAT(context->resetState(), succeeds());
    ASSERT_THAT(context->run(), succeeds());
    EXPECT_EQ(result, (std::vector<float>{1, 1}));
  }
}

/// h' = h + x over `batch` (1..8) x 2 floats.
static ProgramBuilder batchedStateProgram(bool inPlace) {
  ProgramBuilder builder;
  builder.symbol("batch", 1, 8);
  auto shape = [] {
    std::vector<Expr> dims;
    dims.push_back(slot(0));
    dims.push_back(constant(2));
    return dims;
  };
  builder.input("h", DType::f32, shape());
  uint32_t x = builder.buffer(StorageClass::input,
                              builder.input("x", DType::f32, shape()), 64);
  builder.output("hn", DType::f32, shape());
  builder.state(0, 0);
  uint32_t from = builder.buffer(StorageClass::state, 0, 64);
  uint32_t to = builder.buffer(StorageClass::state, 0, 64);
  builder.entry().buffers[to]->next = true;
  builder.entry().buffers[to]->in_place = inPlace;
  std::vector<Expr> sizes;
  sizes.push_back(constant(16));
  sizes.push_back(constant(2));
  builder.launch("add", {from, x, to}, std::move(sizes), slot(0));
  return builder;
}

TEST(Context, StatesKeepTheirShape) {
  for (bool inPlace : {false, true}) {
    ProgramBuilder builder = batchedStateProgram(inPlace);
    auto context = makeContext(builder);
    std::vector<float> ones(16, 1), ten(2, 10);
    auto run = [&](int64_t batch) {
      EXPECT_THAT(bind(*context, 1, ones, {batch, 2}), succeeds());
      return context->run();
    };
    ASSERT_THAT(run(8), succeeds());
    EXPECT_THAT(run(1), failsWith(Code::Usage, "state 'h' is 8x2, expected "
                                               "batchx2: axis 0 is 8, not 1"));
    ASSERT_THAT(run(8), succeeds());
    EXPECT_EQ(floatsOf(context->output(0)), std::vector<float>(16, 2));
    ASSERT_THAT(bind(*context, 0, ten, {1, 2}), succeeds());
    EXPECT_THAT(run(8), failsWith(Code::Usage, "state 'h' is 1x2"));
    ASSERT_THAT(run(1), succeeds());
    EXPECT_EQ(floatsOf(context->output(0)), std::vector<float>(2, 11));
    ASSERT_THAT(context->resetState(), succeeds());
    ASSERT_THAT(run(8), succeeds());
    EXPECT_EQ(floatsOf(context->output(0)), std::vector<float>(16, 1));
    ASSERT_THAT(context->run(), succeeds());
    EXPECT_EQ(floatsOf(context->output(0)), std::vector<float>(16, 2));
  }
}

TEST(Context, StatesTellDimensionsOfTheirOwn) {
  ProgramBuilder builder = batchedStateProgram(false);
  builder.entry().inputs[1]->shape[0] = constant(8);
  auto context = makeContext(builder);
  std::vector<float> ones(16, 1), twos(16, 2);
  ASSERT_THAT(bind(*context, 0, ones, {3, 2}), succeeds());
  for (const std::vector<float> *x : {&ones, &twos}) {
    ASSERT_THAT(bind(*context, 1, *x, {8, 2}), succeeds());
    ASSERT_THAT(context->run(), succeeds());
  }
  EXPECT_EQ(floatsOf(context->output(0)), std::vector<float>(6, 4));
  ASSERT_THAT(context->resetState(), succeeds());
  EXPECT_THAT(context->run(),
              failsWith(Code::Usage, "dimension 'batch' is not bound"));
}

TEST(Context, UsesTheInjectedAllocator) {
  struct Counts {
    int live = 0, made = 0;
  } counts;
  Allocator allocator;
  allocator.user = &counts;
  allocator.allocate = [](void *user, size_t bytes, size_t alignment) {
    ++static_cast<Counts *>(user)->live;
    ++static_cast<Counts *>(user)->made;
    return std::aligned_alloc(alignment,
                              (bytes + alignment - 1) / alignment * alignment);
  };
  allocator.release = [](void *user, void *address, size_t) {
    --static_cast<Counts *>(user)->live;
    std::free(address);
  };
  TemporaryFolder folder;
  ProgramBuilder builder = addOneProgram();
  builder.scratch(1000);
  builder.write(folder / "m.tcc");
  auto executable = loadExecutable(folder / "m.tcc");
  ContextOptions options;
  options.threads = 1;
  options.allocator = allocator;
  auto context = unwrap(Context::create(executable, options));
  std::vector<float> x(4);
  ASSERT_THAT(bind(*context, 0, x, {1, 4}), succeeds());
  ASSERT_THAT(context->run(), succeeds());
  int made = counts.made;
  EXPECT_GE(made, 3); // arena, worker scratch, output
  int64_t others = allocationCount();
  Status status = context->run();
  EXPECT_EQ(allocationCount(), others);
  EXPECT_EQ(counts.made, made);
  EXPECT_THAT(status, succeeds());
  context.reset();
  EXPECT_EQ(counts.live, 0);

  options.allocator.allocate = [](void *, size_t, size_t) -> void * {
    return nullptr;
  };
  EXPECT_THAT(Context::create(executable, options).takeStatus(),
              failsWith(Code::OutOfMemory, "are available"));
}

TEST(Context, TakesDlpackTensors) {
  std::vector<float> x(8, 1);
  int64_t shape[] = {2, 4}, dense[] = {4, 1}, sparse[] = {8, 2};
  dlpack::Tensor tensor = {x.data(), dlpack::kCpu, 0,     2, dlpack::kFloat, 32,
                           1,        shape,        dense, 0};
  TensorView view = unwrap(dlpack::viewOf(tensor));
  EXPECT_EQ(view.data, x.data());
  EXPECT_EQ(view.dtype, DType::f32);
  EXPECT_EQ(view.shape.size(), 2u);
  tensor.strides = sparse;
  EXPECT_THAT(dlpack::viewOf(tensor).takeStatus(),
              failsWith(Code::Usage, "not dense"));
  tensor.strides = nullptr;
  tensor.deviceType = dlpack::DeviceType(8);
  EXPECT_THAT(dlpack::viewOf(tensor).takeStatus(),
              failsWith(Code::Usage, "device type 8"));
  tensor.deviceType = dlpack::kCuda;
  ProgramBuilder builder = addOneProgram();
  EXPECT_THAT(
      makeContext(builder)->bindInput(0, unwrap(dlpack::viewOf(tensor))),
      failsWith(Code::Usage, "CUDA device 0, the package runs on cpu"));
  tensor.deviceType = dlpack::kCpu;
  int64_t negative[] = {2, -4}, huge[] = {INT64_MAX, 2}, empty[] = {0, 4};
  for (int64_t *bad : {negative, huge}) {
    tensor.shape = bad;
    EXPECT_THAT(dlpack::viewOf(tensor).takeStatus(),
                failsWith(Code::Usage, "bad shape"));
  }
  tensor.shape = nullptr;
  EXPECT_THAT(dlpack::viewOf(tensor).takeStatus(),
              failsWith(Code::Usage, "no shape"));
  tensor.shape = empty;
  tensor.strides = sparse;
  EXPECT_EQ(unwrap(dlpack::viewOf(tensor)).shape[0], 0);
  tensor.bits = 12;
  EXPECT_THAT(dlpack::viewOf(tensor).takeStatus(),
              failsWith(Code::Usage, "12 bits"));
}
