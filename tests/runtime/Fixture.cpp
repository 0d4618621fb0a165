#include "tests/runtime/Fixture.h"

#include "runtime/base/Alignment.h"
#include "runtime/package/Digest.h"
#include "runtime/package/Writer.h"

#include <cstring>
#include <elf.h>
#include <unistd.h>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
using format::SizeOp;
using format::StorageClass;

std::vector<char> tests::readBytes(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void tests::writeBytes(const std::string &path,
                       const std::vector<char> &bytes) {
  // ext4 waits for the disk when a file is replaced, not for a new one.
  std::filesystem::remove(path);
  std::ofstream(path, std::ios::binary).write(bytes.data(), bytes.size());
}

const std::vector<char> &tests::kernelImage() {
  static const std::vector<char> image = readBytes(TCC_TEST_KERNELS);
  return image;
}

/// The address of a dynamic symbol of the image, found by section headers.
static uint64_t addressOf(const std::string &symbol) {
  const char *image = kernelImage().data();
  auto header = reinterpret_cast<const Elf64_Ehdr *>(image);
  auto sections = reinterpret_cast<const Elf64_Shdr *>(image + header->e_shoff);
  for (int i = 0; i < header->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_DYNSYM)
      continue;
    auto symbols =
        reinterpret_cast<const Elf64_Sym *>(image + sections[i].sh_offset);
    const char *names = image + sections[sections[i].sh_link].sh_offset;
    for (size_t j = 0; j < sections[i].sh_size / sizeof(Elf64_Sym); ++j)
      if (names + symbols[j].st_name == symbol)
        return symbols[j].st_value;
  }
  ADD_FAILURE() << "no kernel " << symbol;
  return 0;
}

TemporaryFolder::TemporaryFolder() {
  char name[] = "/tmp/tcc-test-XXXXXX";
  path = mkdtemp(name);
}

Expr tests::code(std::vector<Instruction> instructions) {
  auto expr = std::make_unique<format::SizeExprT>();
  expr->code = std::move(instructions);
  return expr;
}

Expr tests::constant(int64_t value) {
  return code({{SizeOp::constant, value}});
}
Expr tests::slot(int64_t index) { return code({{SizeOp::slot, index}}); }

std::unique_ptr<format::OperandT>
tests::makeOperand(uint32_t buffer, DType dtype,
                   std::initializer_list<int64_t> place) {
  auto operand = std::make_unique<format::OperandT>();
  operand->buffer = buffer;
  operand->dtype = dtype;
  for (int64_t size : place)
    operand->place.push_back(constant(size));
  return operand;
}

format::StepT &tests::addStep(format::LibraryWorkT &work, format::StepKind kind,
                              std::unique_ptr<format::OperandT> operand) {
  work.steps.push_back(std::make_unique<format::StepT>());
  format::StepT &step = *work.steps.back();
  step.kind = kind;
  step.operand = std::move(operand);
  return step;
}

ProgramBuilder::ProgramBuilder() {
  auto variant = std::make_unique<format::VariantT>();
  variant->target = "cpu";
  variant->cpu = "test";
  variant->features = {"sse2"};
  tables.variants.push_back(std::move(variant));
  inEntry(EntryKind::main);
}

format::EntryT &ProgramBuilder::entry(EntryKind kind, uint16_t variant) {
  for (auto &entry : tables.entries)
    if (entry->kind == kind && entry->variant == variant)
      return *entry;
  auto added = std::make_unique<format::EntryT>();
  added->kind = kind;
  added->variant = variant;
  added->body = std::make_unique<format::BlockT>();
  added->worker_scratch_bytes = 64;
  tables.entries.push_back(std::move(added));
  return *tables.entries.back();
}

ProgramBuilder &ProgramBuilder::inEntry(EntryKind kind, uint16_t variant) {
  current = &entry(kind, variant);
  blocks = {current->body.get()};
  return *this;
}

void ProgramBuilder::symbol(const std::string &name, int64_t min, int64_t max) {
  auto added = std::make_unique<format::SymbolT>();
  added->name = name;
  added->min = min;
  added->max = max;
  tables.symbols.push_back(std::move(added));
  current->slot_count =
      std::max<uint32_t>(current->slot_count, tables.symbols.size());
}

static std::unique_ptr<format::TensorSpecT>
makeSpec(const std::string &name, DType dtype, std::vector<Expr> shape) {
  auto spec = std::make_unique<format::TensorSpecT>();
  spec->name = name;
  spec->dtype = dtype;
  spec->shape = std::move(shape);
  return spec;
}

uint32_t ProgramBuilder::input(const std::string &name, DType dtype,
                               std::vector<Expr> shape) {
  auto &inputs = current->inputs;
  inputs.push_back(makeSpec(name, dtype, std::move(shape)));
  return inputs.size() - 1;
}

uint32_t ProgramBuilder::output(const std::string &name, DType dtype,
                                std::vector<Expr> shape) {
  auto &outputs = current->outputs;
  outputs.push_back(makeSpec(name, dtype, std::move(shape)));
  return outputs.size() - 1;
}

uint32_t ProgramBuilder::buffer(StorageClass storage, uint32_t index,
                                uint64_t maxBytes) {
  auto added = std::make_unique<format::BufferT>();
  added->storage = storage;
  added->index = index;
  added->max_bytes = maxBytes;
  auto &buffers = current->buffers;
  buffers.push_back(std::move(added));
  return buffers.size() - 1;
}

uint32_t ProgramBuilder::scratch(uint64_t bytes) {
  uint32_t index = buffer(StorageClass::scratch, 0, bytes);
  current->buffers[index]->offset = current->scratch_bytes;
  current->scratch_bytes = alignTensor(current->scratch_bytes + bytes);
  return index;
}

uint32_t ProgramBuilder::fault() {
  return buffer(StorageClass::fault, 0, 2 * sizeof(int64_t));
}

uint32_t ProgramBuilder::view(uint32_t base, Expr offset, uint64_t maxBytes) {
  uint32_t index = buffer(StorageClass::scratch, 0, maxBytes);
  current->buffers[index]->base = base;
  current->buffers[index]->view_offset = std::move(offset);
  return index;
}

uint32_t ProgramBuilder::weight(const std::string &name,
                                const std::vector<float> &values,
                                std::vector<uint32_t> sources) {
  auto added = std::make_unique<format::ConstTensorT>();
  added->name = name;
  added->shape = {int64_t(values.size())};
  added->offset = weightEnd;
  added->bytes = values.size() * sizeof(float);
  auto digest = digestOf(std::as_bytes(std::span(values)));
  added->digest.assign(digest.bytes, digest.bytes + sizeof(digest));
  added->sources = std::move(sources);
  weightEnd = alignTensor(weightEnd + added->bytes);
  weightValues.push_back(values);
  tables.weights.push_back(std::move(added));
  return tables.weights.size() - 1;
}

uint32_t ProgramBuilder::modelTensor(const std::string &name,
                                     std::vector<int64_t> shape,
                                     int32_t constIndex) {
  auto added = std::make_unique<format::ModelTensorT>();
  added->name = name;
  added->shape = std::move(shape);
  added->const_index = constIndex;
  tables.model_tensors.push_back(std::move(added));
  return tables.model_tensors.size() - 1;
}

void ProgramBuilder::state(uint32_t input, uint32_t output) {
  auto added = std::make_unique<format::StatePairT>();
  added->input = input;
  added->output = output;
  current->states.push_back(std::move(added));
}

uint32_t ProgramBuilder::variable(const std::string &name, DType dtype,
                                  std::vector<int64_t> shape,
                                  format::VariableKind kind) {
  auto added = std::make_unique<format::VariableT>();
  added->name = name;
  added->dtype = dtype;
  added->shape = std::move(shape);
  added->kind = kind;
  tables.variables.push_back(std::move(added));
  return tables.variables.size() - 1;
}

uint32_t ProgramBuilder::field(format::StepField field) {
  uint32_t index = variable(format::variableOf(field), DType::i64, {});
  tables.variables[index]->field = field;
  return index;
}

void ProgramBuilder::setting(const std::string &key, uint32_t variable) {
  auto added = std::make_unique<format::SettingT>();
  added->key = key;
  added->variable = variable;
  added->range = std::make_unique<format::Range>(0, HUGE_VAL, false, true);
  const format::VariableT &held = *tables.variables[variable];
  added->initial.resize(*runtime::bytesOf(held.dtype, held.shape));
  tables.settings.push_back(std::move(added));
}

void ProgramBuilder::moveToDevice(format::EntryT &entry) {
  entry.space = format::MemorySpace::device;
  entry.worker_scratch_bytes = 0;
  for (auto &buffer : entry.buffers)
    buffer->space = entry.space;
}

void ProgramBuilder::compileForDevice() {
  setenv("TCC_PLUGINS", TCC_PLUGIN_FOLDER, /*overwrite=*/1);
  std::vector<bool> isHost(tables.kernels.size());
  for (auto &entry : tables.entries) {
    if (entry->kind != EntryKind::prepare) {
      moveToDevice(*entry);
      continue;
    }
    for (auto &command : entry->body->commands)
      if (const format::LaunchT *launch = command->action.AsLaunch())
        isHost[launch->kernel] = true;
  }
  auto variant = std::make_unique<format::VariantT>(*tables.variants[0]);
  variant->target = "emulated";
  for (size_t i = 0; i < isHost.size(); ++i) {
    uint64_t address = format::kNoKernel;
    if (!isHost[i])
      address = addressOf("device_" + tables.kernels[i]->symbol);
    variant->kernel_offsets[i] = address;
    tables.kernels[i]->threads = isHost[i] ? 0 : 32;
    if (!isHost[i])
      tables.variants[0]->kernel_offsets[i] = format::kNoKernel;
  }
  tables.variants.push_back(std::move(variant));
}

uint32_t ProgramBuilder::kernel(const std::string &symbol) {
  for (size_t i = 0; i < tables.kernels.size(); ++i)
    if (tables.kernels[i]->symbol == symbol)
      return i;
  auto added = std::make_unique<format::KernelT>();
  added->symbol = symbol;
  tables.kernels.push_back(std::move(added));
  tables.variants[0]->kernel_offsets.push_back(addressOf(symbol));
  return tables.kernels.size() - 1;
}

void ProgramBuilder::onLane(uint16_t newLane) {
  lane = newLane;
  current->lane_count = std::max<uint16_t>(current->lane_count, lane + 1);
}

void ProgramBuilder::orderLanes(uint16_t from, uint16_t to) {
  uint16_t before = lane;
  format::RecordEventT record;
  format::WaitEventT wait;
  record.event = wait.event = current->event_count++;
  onLane(from);
  command(std::move(record));
  onLane(to);
  command(std::move(wait));
  onLane(before);
}

void ProgramBuilder::copy(uint32_t from, uint32_t to, uint64_t bytes) {
  format::CopyT copy;
  copy.from = from;
  copy.to = to;
  copy.bytes = constant(static_cast<int64_t>(bytes));
  command(std::move(copy));
}

format::LaunchT &ProgramBuilder::launch(const std::string &symbol,
                                        std::vector<uint32_t> buffers,
                                        std::vector<Expr> sizes, Expr tasks) {
  format::LaunchT launch;
  launch.kernel = kernel(symbol);
  launch.buffers = std::move(buffers);
  launch.sizes = std::move(sizes);
  launch.tasks = std::move(tasks);
  launch.node = symbol + "_node";
  launch.nodes = {launch.node};
  auto isFault = [&](uint32_t buffer) {
    return buffer < current->buffers.size() &&
           current->buffers[buffer]->storage == StorageClass::fault;
  };
  tables.kernels[launch.kernel]->alignments.assign(
      std::ranges::count_if(launch.buffers, std::not_fn(isFault)), 4);
  return command(std::move(launch));
}

std::vector<std::byte> ProgramBuilder::program() {
  flatbuffers::FlatBufferBuilder builder;
  format::FinishProgramBuffer(builder, format::Program::Pack(builder, &tables));
  auto bytes =
      std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
  return {bytes.begin(), bytes.end()};
}

void ProgramBuilder::write(const std::string &path) { write(path, program()); }

void ProgramBuilder::write(const std::string &path,
                           std::span<const std::byte> program) {
  PackageWriter writer;
  // The section that all variants name.
  writer.addSection(format::SectionKind::Code,
                    std::as_bytes(std::span(kernelImage())));
  writer.addSection(format::SectionKind::Program, program);
  std::vector<WeightData> weights;
  for (size_t i = 0; i < weightValues.size(); ++i) {
    if (tables.weights[i]->digest.empty())
      continue;
    format::Digest digest;
    std::memcpy(&digest, tables.weights[i]->digest.data(), sizeof(digest));
    weights.push_back({tables.weights[i]->offset,
                       std::as_bytes(std::span(weightValues[i])), digest,
                       tables.weights[i]->sparse});
  }
  if (withWeights && !weights.empty())
    writer.addWeights(weights);
  ASSERT_THAT(writer.write(path), succeeds());
}

void tests::spoilFirstCommand(std::vector<std::byte> &program) {
  const format::Entry &entry =
      *format::GetProgram(program.data())->entries()->Get(0);
  const format::Command *command = entry.body()->commands()->Get(0);
  auto *table = reinterpret_cast<flatbuffers::Table *>(
      const_cast<format::Command *>(command));
  EXPECT_TRUE(table->SetField<uint8_t>(format::Command::VT_ACTION_TYPE, 99, 0));
}

ProgramBuilder tests::addOneProgram() {
  ProgramBuilder builder;
  builder.symbol("batch", 1, 8);
  std::vector<Expr> shape, same;
  for (std::vector<Expr> *dims : {&shape, &same}) {
    dims->push_back(slot(0));
    dims->push_back(constant(4));
  }
  uint32_t in = builder.input("x", DType::f32, std::move(shape));
  uint32_t out = builder.output("y", DType::f32, std::move(same));
  uint32_t from = builder.buffer(StorageClass::input, in, 8 * 16);
  uint32_t to = builder.buffer(StorageClass::output, out, 8 * 16);
  std::vector<Expr> sizes;
  sizes.push_back(
      code({{SizeOp::slot, 0}, {SizeOp::constant, 4}, {SizeOp::mul, 0}}));
  sizes.push_back(constant(4));
  format::LaunchT &launch =
      builder.launch("add_one", {from, to}, std::move(sizes), slot(0));
  launch.bytes =
      code({{SizeOp::slot, 0}, {SizeOp::constant, 32}, {SizeOp::mul, 0}});
  return builder;
}

std::shared_ptr<const Executable>
tests::loadExecutable(const std::string &path,
                      const ExecutableOptions &options) {
  return unwrap(Executable::load(unwrap(Package::open(path)), options));
}

std::shared_ptr<const Executable>
tests::loadEmulated(ProgramBuilder &builder, const std::string &tuneCache) {
  TemporaryFolder folder;
  builder.compileForDevice();
  builder.write(folder / "m.tcc");
  ExecutableOptions options;
  options.device = "emulated";
  options.tuneCache = tuneCache;
  return loadExecutable(folder / "m.tcc", options);
}

std::unique_ptr<runtime::Context> tests::makeContext(ProgramBuilder &builder,
                                                     int threads) {
  TemporaryFolder folder;
  builder.write(folder / "m.tcc");
  ContextOptions options;
  options.threads = threads;
  return unwrap(
      runtime::Context::create(loadExecutable(folder / "m.tcc"), options));
}

std::vector<float> tests::floatsOf(const TensorView &tensor) {
  auto data = static_cast<const float *>(tensor.data);
  return {data, data + elementCount(tensor.shape)};
}
