// The public API, through its C++ layer.

#include "tcc/runtime.hpp"

#include "tests/runtime/Fixture.h"

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
  std::vector<float> z(12);
  context.bindOutput(0, z.data(), z.size());
  context.run();
  EXPECT_EQ(z, std::vector<float>(12, 2));
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
  // A caller compiled when the struct had only its size.
  tcc_package_options old = {sizeof(size_t), 1};
  tcc_package *package = nullptr;
  ASSERT_EQ(tcc_package_open(path.c_str(), &old, &package), nullptr);
  tcc_package_release(package);
}

TEST(Api, Names) {
  EXPECT_STREQ(tcc_dtype_name(TCC_BF16), "bf16");
  EXPECT_EQ(tcc_dtype_size(TCC_I64), 8u);
  EXPECT_EQ(tcc_dtype_size(static_cast<tcc_dtype>(99)), 0u);
  EXPECT_EQ(tcc_status_code(nullptr), TCC_OK);
  EXPECT_STREQ(tcc_status_message(nullptr), "");
  tcc_status_free(nullptr);
}
