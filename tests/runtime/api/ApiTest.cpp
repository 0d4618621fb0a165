// The public API, through its C++ layer.

#include "tcc/runtime.hpp"

#include "runtime/executor/DLPack.h"
#include "tests/runtime/Allocations.h"
#include "tests/runtime/Fixture.h"

#include <algorithm>
#include <thread>

namespace {

/// The add-one package with metadata, opened through the API.
class ApiTest : public testing::Test {
protected:
  void SetUp() override {
    tcc::tests::ProgramBuilder builder = tcc::tests::addOneProgram();
    auto pair = std::make_unique<tcc::format::MetadataT>();
    pair->key = "alphabet";
    pair->value = "abc";
    builder.tables.metadata.push_back(std::move(pair));
    builder.write(path);
  }

  tcc::tests::TemporaryFolder folder;
  std::string path = folder / "m.tcc";
};

tcc_code codeOf(const std::function<void()> &call) {
  try {
    call();
  } catch (const tcc::Error &error) {
    return error.code();
  }
  return TCC_OK;
}

tcc_code freed(tcc_status status) {
  tcc_code code = tcc_status_code(status);
  tcc_status_free(status);
  return code;
}

} // namespace

TEST_F(ApiTest, RunsAPackage) {
  tcc::Package package = tcc::Package::open(path);
  tcc::Program program(package);
  tcc::Context context(program, {.threads = 2});
  std::vector<float> x(12, 1);
  context.bind("x", x.data(), {3, 4});
  context.run();
  tcc::Tensor y = context.output("y");
  EXPECT_EQ(y.shape(), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(y.size(), 12u);
  EXPECT_EQ(y.data<float>()[11], 2);
  EXPECT_THROW(y.data<double>(), tcc::Error);
  EXPECT_EQ(y.bytes(), y.data<float>());
  EXPECT_EQ(y.byteCount(), 48u);
  std::vector<float> z(12);
  context.bindOutput(0, z.data(), z.size());
  context.run();
  EXPECT_EQ(z, std::vector<float>(12, 2));
  context.bindOutputBytes(0, x.data(), y.byteCount());
  context.run();
  EXPECT_EQ(x, std::vector<float>(12, 2));
}

TEST_F(ApiTest, DescribesThePackage) {
  tcc::Package package = tcc::Package::open(path);
  EXPECT_EQ(package.findMetadata("alphabet"), "abc");
  EXPECT_EQ(package.findMetadata("absent"), std::nullopt);
  EXPECT_EQ(package.metadata().size(), 1u);
  tcc::Program program(package);
  ASSERT_EQ(program.inputCount(), 1u);
  const tcc_tensor_spec &x = program.input(0);
  EXPECT_STREQ(x.name, "x");
  EXPECT_EQ(x.dtype, TCC_F32);
  ASSERT_EQ(x.rank, 2u);
  EXPECT_STREQ(x.dims[0].symbol, "batch");
  EXPECT_EQ(x.dims[0].extent, -1);
  EXPECT_EQ(x.dims[0].max, 8);
  EXPECT_EQ(x.dims[1].extent, 4);
  EXPECT_EQ(x.dims[1].symbol, nullptr);
  EXPECT_EQ(x.state, -1);
}

TEST_F(ApiTest, ReportsCodes) {
  EXPECT_EQ(codeOf([&] { tcc::Package::open(folder / "no"); }), TCC_IO);
  tcc::tests::writeBytes(folder / "bad", {'x'});
  EXPECT_EQ(codeOf([&] { tcc::Package::open(folder / "bad"); }), TCC_BAD_DATA);
  tcc::Package package = tcc::Package::open(path);
  tcc::Program program(package);
  tcc::Context context(program);
  EXPECT_EQ(codeOf([&] { context.run(); }), TCC_USAGE);
  EXPECT_EQ(codeOf([&] { program.findInput("z"); }), TCC_USAGE);
  EXPECT_EQ(codeOf([&] { context.setDim("z", 1); }), TCC_USAGE);
  EXPECT_EQ(codeOf([&] { context.output(3); }), TCC_USAGE);
}

TEST_F(ApiTest, ObjectsKeepWhatTheyAreMadeOfAlive) {
  tcc_package *package = nullptr;
  tcc_program *program = nullptr;
  tcc_context *context = nullptr;
  ASSERT_EQ(tcc_package_open(path.c_str(), nullptr, &package), nullptr);
  ASSERT_EQ(tcc_program_create(package, nullptr, &program), nullptr);
  tcc_package_release(package);
  ASSERT_EQ(tcc_context_create(program, nullptr, &context), nullptr);
  tcc_program_release(program);
  std::vector<float> x(4, 1);
  int64_t shape[] = {1, 4};
  tcc_tensor tensor = {x.data(), TCC_F32, 2, shape};
  ASSERT_EQ(tcc_context_bind_input(context, 0, &tensor), nullptr);
  ASSERT_EQ(tcc_context_run(context), nullptr);
  tcc_context_release(context);
}

TEST_F(ApiTest, UsesAnInjectedPoolAndLog) {
  struct Uses {
    int runs = 0;
    std::string log;
  } uses;
  tcc_log_sink log = {&uses, [](void *user, int, const char *message) {
                        static_cast<Uses *>(user)->log += message;
                      }};
  tcc_thread_pool pool = {
      &uses, 2,
      [](void *user, int64_t tasks, int64_t grain, tcc_task task,
         void *argument) {
        ++static_cast<Uses *>(user)->runs;
        for (int64_t first = 0; first < tasks; first += grain)
          task(argument, first, std::min(first + grain, tasks), 1);
      }};
  tcc::Package package = tcc::Package::open(path);
  tcc::Program program(package, {.log = &log});
  EXPECT_NE(uses.log.find("test"), std::string::npos);
  tcc::Context context(program, {.pool = &pool});
  std::vector<float> x(8, 1);
  context.bind("x", x.data(), {2, 4});
  context.run();
  EXPECT_EQ(uses.runs, 1);
  EXPECT_EQ(context.output(0).data<float>()[7], 2);
}

TEST_F(ApiTest, ReadsOlderOptionStructs) {
  // A caller compiled when the struct had only its size does not skip a check.
  const float value = 1234.5f;
  tcc::tests::ProgramBuilder builder = tcc::tests::addOneProgram();
  builder.weight("w", {value});
  builder.write(path);
  std::vector<char> bytes = tcc::tests::readBytes(path);
  auto first = reinterpret_cast<const char *>(&value);
  auto weight = std::search(bytes.begin(), bytes.end(), first, first + 4);
  ASSERT_NE(weight, bytes.end());
  *weight ^= 1;
  tcc::tests::writeBytes(path, bytes);
  tcc_package_options options = {sizeof(options), 1};
  tcc_package *package = nullptr;
  ASSERT_EQ(tcc_package_open(path.c_str(), &options, &package), nullptr);
  tcc_package_release(package);
  options.struct_size = sizeof(size_t);
  EXPECT_EQ(freed(tcc_package_open(path.c_str(), &options, &package)),
            TCC_BAD_DATA);
}

TEST_F(ApiTest, ThrowsNothingAtTheCaller) {
  if (!TCC_COUNTS_ALLOCATIONS)
    GTEST_SKIP();
  tcc_package *package = nullptr;
  int failures = 0;
  for (int64_t allowed = 0; !package; ++allowed) {
    tcc_status status = nullptr;
    {
      tcc::tests::ExhaustedMemory memory(allowed);
      status = tcc_package_open(path.c_str(), nullptr, &package);
    }
    failures += status != nullptr;
    EXPECT_EQ(freed(status), package ? TCC_OK : TCC_OUT_OF_MEMORY);
  }
  EXPECT_GT(failures, 3);
  tcc_package_release(package);

  tcc_thread_pool pool = {
      nullptr, 2, [](void *, int64_t, int64_t, tcc_task, void *) { throw 42; }};
  tcc::Package opened = tcc::Package::open(path);
  tcc::Program program(opened);
  tcc::Context context(program, {.pool = &pool});
  std::vector<float> x(8, 1);
  context.bind("x", x.data(), {2, 4});
  EXPECT_EQ(codeOf([&] { context.run(); }), TCC_INTERNAL);
}

TEST_F(ApiTest, HasOutputsOnlyAfterARun) {
  tcc::Package package = tcc::Package::open(path);
  tcc::Program program(package);
  tcc::Context context(program);
  auto code = [&] { return codeOf([&] { context.output(0); }); };
  EXPECT_EQ(code(), TCC_USAGE);
  std::vector<float> x(40, 1);
  context.bind("x", x.data(), {2, 4});
  EXPECT_EQ(code(), TCC_USAGE);
  context.run();
  EXPECT_EQ(code(), TCC_OK);
  context.bind("x", x.data(), {9, 4});
  EXPECT_EQ(code(), TCC_USAGE);
  EXPECT_EQ(codeOf([&] { context.run(); }), TCC_USAGE);
  EXPECT_EQ(code(), TCC_USAGE);
}

TEST_F(ApiTest, BindsDlpackTensors) {
  namespace dlpack = tcc::runtime::dlpack;
  tcc::Package package = tcc::Package::open(path);
  tcc::Program program(package);
  tcc::Context context(program);
  std::vector<float> x(8, 1), y(8);
  int64_t shape[] = {2, 4}, turned[] = {4, 2}, negative[] = {-2, -4};
  int64_t huge[] = {int64_t(1) << 62, 4};
  dlpack::Tensor from = {x.data(), dlpack::kCpu, 0,       2, dlpack::kFloat, 32,
                         1,        shape,        nullptr, 0};
  dlpack::Tensor to = from;
  to.data = y.data();
  auto bindInput = [&] {
    context.bind(0, reinterpret_cast<DLManagedTensor *>(&from));
  };
  auto bindOutput = [&] {
    context.bindOutput(0, reinterpret_cast<DLManagedTensor *>(&to));
  };
  for (const int64_t *bad : {negative, huge}) {
    from.shape = to.shape = bad;
    EXPECT_EQ(codeOf(bindInput), TCC_USAGE);
    EXPECT_EQ(codeOf(bindOutput), TCC_USAGE);
  }
  from.shape = shape;
  to.shape = turned;
  bindInput();
  bindOutput();
  EXPECT_EQ(codeOf([&] { context.run(); }), TCC_USAGE);
  to.shape = shape;
  bindOutput();
  context.run();
  EXPECT_EQ(y, std::vector<float>(8, 2));
}

TEST_F(ApiTest, TheCpuHasNoStreams) {
  tcc::Package package = tcc::Package::open(path);
  tcc::Program program(package);
  tcc::Context context(program);
  EXPECT_EQ(codeOf([&] { context.setStream(nullptr); }), TCC_USAGE);
  std::vector<float> x(8, 1);
  context.bind("x", x.data(), {2, 4});
  context.start();
  context.finish();
  EXPECT_EQ(context.output(0).device(), -1);
  EXPECT_EQ(context.output(0).data<float>()[0], 2);
}

TEST_F(ApiTest, RefusesUnknownDtypes) {
  tcc::Package package = tcc::Package::open(path);
  tcc::Program program(package);
  tcc::Context context(program);
  std::vector<float> x(4);
  int64_t shape[] = {1, 4};
  for (int dtype : {13, 256, -1}) {
    auto unknown = static_cast<tcc_dtype>(dtype);
    tcc_tensor tensor = {x.data(), unknown, 2, shape};
    EXPECT_EQ(freed(tcc_context_bind_input(context.get(), 0, &tensor)),
              TCC_USAGE);
    EXPECT_EQ(tcc_dtype_size(unknown), 0u);
    EXPECT_STREQ(tcc_dtype_name(unknown), "unknown");
  }
}

TEST(Api, Names) {
  EXPECT_STREQ(tcc_dtype_name(TCC_BF16), "bf16");
  EXPECT_EQ(tcc_dtype_size(TCC_I64), 8u);
  EXPECT_EQ(tcc_dtype_size(static_cast<tcc_dtype>(99)), 0u);
  EXPECT_EQ(tcc_status_code(nullptr), TCC_OK);
  EXPECT_STREQ(tcc_status_message(nullptr), "");
  tcc_status_free(nullptr);
}

/// Programs of two and of three rows: each has its bindings, and tensors
/// choose.
TEST_F(ApiTest, HasVariantsOfSizes) {
  using tcc::tests::constant;
  tcc::tests::ProgramBuilder builder;
  for (int64_t rows : {2, 3}) {
    builder.inEntry(tcc::format::EntryKind::main, uint16_t(rows - 2));
    std::vector<tcc::tests::Expr> shape, same, sizes;
    for (auto *dims : {&shape, &same}) {
      dims->push_back(constant(rows));
      dims->push_back(constant(4));
    }
    uint32_t in =
        builder.input("x", tcc::runtime::DType::f32, std::move(shape));
    uint32_t out =
        builder.output("y", tcc::runtime::DType::f32, std::move(same));
    uint32_t from = builder.buffer(tcc::format::StorageClass::input, in,
                                   uint64_t(rows) * 16);
    uint32_t to = builder.buffer(tcc::format::StorageClass::output, out,
                                 uint64_t(rows) * 16);
    sizes.push_back(constant(rows * 4));
    sizes.push_back(constant(4));
    builder.launch("add_one", {from, to}, std::move(sizes), constant(rows));
  }
  builder.write(path);
  tcc::Program program(tcc::Package::open(path));
  ASSERT_EQ(tcc_program_variant_count(program.get()), 2u);
  EXPECT_EQ(tcc_program_variant_input(program.get(), 1, 0)->dims[0].extent, 3);
  EXPECT_EQ(tcc_program_variant_output(program.get(), 1, 0)->dims[0].extent, 3);
  EXPECT_EQ(tcc_program_variant_input(program.get(), 1, 1), nullptr);
  EXPECT_EQ(tcc_program_variant_output(program.get(), 2, 0), nullptr);
  tcc::Context context(program, {.threads = 2});
  std::vector<float> two(8, 1), three(12, 2);
  context.bind("x", two.data(), {2, 4});
  context.chooseVariant({{3, 4}});
  context.bind("x", three.data(), {3, 4});
  context.run();
  EXPECT_EQ(context.output("y").shape(), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(context.output("y").data<float>()[11], 3);
  context.setVariant(0);
  context.run();
  EXPECT_EQ(context.output("y").shape(), (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(context.output("y").data<float>()[7], 2);
  EXPECT_EQ(codeOf([&] { context.chooseVariant({{4, 4}}); }), TCC_USAGE);
  EXPECT_EQ(codeOf([&] { context.setVariant(2); }), TCC_USAGE);
}
