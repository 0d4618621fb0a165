// What a driver is given to load, and what becomes of what it refuses.

#include "runtime/devices/cuda/CodeModule.h"
#include "runtime/package/Cubin.h"
#include "runtime/package/Writer.h"
#include "tests/runtime/Fixture.h"

#include <cstring>
#include <elf.h>
#include <functional>
#include <random>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;
using namespace tcc::tests;

namespace {

constexpr Error kNoBinaryForGpu = 209;

/// A cubin with a segment, a section of code, its symbol and their names.
struct Cubin {
  Elf64_Ehdr header = {};
  Elf64_Phdr segments[1] = {};
  Elf64_Shdr sections[5] = {};
  Elf64_Sym symbols[2] = {};
  char names[32] = "\0.text.k\0.shstrtab";
  char strings[8] = "\0k";
  char code[64] = "no code";

  Cubin() {
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_machine = 190;
    header.e_phoff = offsetof(Cubin, segments);
    header.e_phnum = 1;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_shoff = offsetof(Cubin, sections);
    header.e_shnum = 5;
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shstrndx = 1;
    segments[0].p_type = PT_LOAD;
    segments[0].p_offset = offsetof(Cubin, code);
    segments[0].p_filesz = segments[0].p_memsz = sizeof(code);
    set(1, SHT_STRTAB, offsetof(Cubin, names), sizeof(names));
    set(2, SHT_STRTAB, offsetof(Cubin, strings), sizeof(strings));
    set(3, SHT_SYMTAB, offsetof(Cubin, symbols), sizeof(symbols));
    sections[3].sh_link = 2;
    sections[3].sh_entsize = sizeof(Elf64_Sym);
    set(4, SHT_PROGBITS, offsetof(Cubin, code), sizeof(code));
    symbols[1].st_name = 1;
  }

  void set(int index, uint32_t type, uint64_t offset, uint64_t size) {
    sections[index].sh_name = 1;
    sections[index].sh_type = type;
    sections[index].sh_offset = offset;
    sections[index].sh_size = size;
  }
  std::span<const std::byte> bytes() const {
    return std::as_bytes(std::span(this, 1));
  }
};

const std::function<void(Cubin &)> kSpoiledCubins[] = {
    [](Cubin &c) { c.header.e_ident[0] = 0; },
    [](Cubin &c) { c.header.e_ident[EI_CLASS] = ELFCLASS32; },
    [](Cubin &c) { c.header.e_machine = EM_X86_64; },
    [](Cubin &c) { c.header.e_shoff = sizeof(Cubin) - 8; },
    [](Cubin &c) { c.header.e_shoff = UINT64_MAX; },
    [](Cubin &c) { --c.header.e_shoff; },
    [](Cubin &c) { c.header.e_phnum = 0xffff; },
    [](Cubin &c) { c.header.e_shstrndx = 5; },
    [](Cubin &c) { c.header.e_shstrndx = 4; },
    [](Cubin &c) { c.segments[0].p_filesz = sizeof(Cubin); },
    [](Cubin &c) { c.segments[0].p_offset = UINT64_MAX; },
    [](Cubin &c) { c.segments[0].p_memsz = 1; },
    [](Cubin &c) { c.sections[4].sh_size = sizeof(Cubin); },
    [](Cubin &c) { c.sections[4].sh_offset = UINT64_MAX - 8; },
    [](Cubin &c) { c.sections[4].sh_name = sizeof(c.names); },
    [](Cubin &c) { c.sections[3].sh_link = 5; },
    [](Cubin &c) { --c.sections[3].sh_offset; },
    [](Cubin &c) { c.sections[3].sh_link = 4; },
    [](Cubin &c) { c.sections[3].sh_entsize = 1; },
    [](Cubin &c) { c.symbols[1].st_name = sizeof(c.strings); },
    [](Cubin &c) { c.names[sizeof(c.names) - 1] = 'x'; },
    [](Cubin &c) { c.strings[sizeof(c.strings) - 1] = 'x'; },
};

/// Reads all that the headers say, as a loader does.
size_t readAll(const std::vector<std::byte> &bytes) {
  auto at = [&](uint64_t offset) {
    return reinterpret_cast<const char *>(&bytes.at(offset));
  };
  size_t sum = 0;
  auto read = [&](uint64_t offset, uint64_t size) {
    for (uint64_t i = 0; i < size; ++i)
      sum += *at(offset + i);
  };
  auto header = reinterpret_cast<const Elf64_Ehdr *>(at(0));
  auto sections = reinterpret_cast<const Elf64_Shdr *>(at(header->e_shoff));
  auto segments = reinterpret_cast<const Elf64_Phdr *>(at(0) + header->e_phoff);
  for (int i = 0; i < header->e_phnum; ++i)
    read(segments[i].p_offset, segments[i].p_filesz);
  uint64_t names = sections[header->e_shstrndx].sh_offset;
  for (int i = 0; i < header->e_shnum; ++i)
    if (const Elf64_Shdr &one = sections[i]; one.sh_type != SHT_NULL) {
      sum += std::strlen(at(names + one.sh_name));
      if (one.sh_type != SHT_NOBITS)
        read(one.sh_offset, one.sh_size);
    }
  return sum;
}

/// Code that the fake driver refuses with an error, by its first byte.
char refusedFirst;
Error refusal;
std::string loaded;             ///< as text
std::vector<std::string> asked; ///< names of kernels
std::vector<int> sharedBytes;

Error loadData(ModuleHandle *module, const void *image, unsigned, int *,
               void **) {
  loaded.assign(static_cast<const char *>(image), 4);
  if (loaded[0] == refusedFirst)
    return refusal;
  *module = reinterpret_cast<ModuleHandle>(&loaded);
  return kSuccess;
}

Driver fakeDriver() {
  Driver driver = {};
  driver.moduleLoadDataEx = loadData;
  driver.moduleUnload = [](ModuleHandle) { return kSuccess; };
  driver.moduleGetFunction = [](FunctionHandle *, ModuleHandle,
                                const char *name) {
    asked.push_back(name);
    return kSuccess;
  };
  driver.funcSetAttribute = [](FunctionHandle, int attribute, int value) {
    EXPECT_EQ(attribute, 8);
    sharedBytes.push_back(value);
    return value > 200000 ? kInvalidValue : kSuccess;
  };
  driver.getErrorString = [](Error, const char **text) {
    *text = "no kernel image is available";
    return kSuccess;
  };
  return driver;
}

/// A package for a device. The code of "ptx" is a text, of other `variants`
/// `cubin`; "0:" before it: the variant names the kernel, which is as
/// described.
std::shared_ptr<const Package>
makePackage(std::vector<std::string> variants,
            std::span<const std::byte> cubin = Cubin().bytes(),
            const format::KernelT &described = {}) {
  TemporaryFolder folder;
  ProgramBuilder builder = addOneProgram();
  builder.tables.kernels[0]->entry = described.entry;
  builder.tables.kernels[0]->shared_bytes = described.shared_bytes;
  builder.compileForDevice();
  builder.tables.variants.clear();
  PackageWriter writer;
  for (std::string &name : variants) {
    auto variant = std::make_unique<format::VariantT>();
    variant->target = "cuda";
    if (name[1] == ':') {
      variant->kernels.push_back(name[0] - '0');
      name.erase(0, 2);
    }
    variant->cpu = name;
    static constexpr std::string_view kText = ".version 7.8";
    variant->image = writer.addSection(
        format::SectionKind::Code,
        name == "ptx" ? std::as_bytes(std::span(kText)) : cubin);
    builder.tables.variants.push_back(std::move(variant));
  }
  std::vector<std::byte> program = builder.program();
  writer.addSection(format::SectionKind::Program, program);
  EXPECT_THAT(writer.write(folder / "m.tcc"), succeeds());
  return unwrap(Package::open(folder / "m.tcc"));
}

/// Loads for an sm_`major`0; what is logged is appended to `note`.
Status load(const Package &package, int major, std::string &note) {
  static const Driver driver = fakeDriver();
  LogSink log = {&note, [](void *user, int, const char *message) {
                   *static_cast<std::string *>(user) += message;
                 }};
  loaded.clear();
  asked.clear();
  sharedBytes.clear();
  auto code = CodeModule::loadCuda(driver, package, major, 0, log);
  return code.ok() ? Status() : code.takeStatus();
}

} // namespace

TEST(CodeModule, TakesACubinElsePtx) {
  refusedFirst = 'x';
  std::string note;
  auto package = makePackage({"ptx", "sm_90"});
  ASSERT_THAT(load(*package, 9, note), succeeds());
  EXPECT_EQ(loaded, "\177ELF");
  ASSERT_THAT(load(*package, 10, note), succeeds());
  EXPECT_EQ(loaded, ".ver");
  EXPECT_EQ(note, "");
  EXPECT_THAT(load(*makePackage({"sm_90"}), 10, note),
              failsWith(Code::Device, "an sm_100, only: sm_90"));
}

TEST(CodeModule, CompilesPtxInThePlaceOfARefusedCubin) {
  refusedFirst = '\177';
  refusal = kNoBinaryForGpu;
  std::string note;
  ASSERT_THAT(load(*makePackage({"sm_90", "ptx"}), 9, note), succeeds());
  EXPECT_EQ(loaded, ".ver");
  EXPECT_THAT(note, testing::HasSubstr("no kernel image is available (CUDA "
                                       "error 209); its PTX is compiled"));
  note.clear();
  EXPECT_THAT(load(*makePackage({"sm_90"}), 9, note),
              failsWith(Code::Device, "no kernel image is available"));
  refusal = kOutOfMemory;
  EXPECT_THAT(load(*makePackage({"sm_90", "ptx"}), 9, note),
              failsWith(Code::OutOfMemory, "loading the code for sm_90"));
  EXPECT_EQ(note, "");
}

TEST(CodeModule, TakesTheCodeThatNamesAKernel) {
  refusedFirst = 'x';
  std::string note;
  Cubin cubin;
  ASSERT_THAT(load(*makePackage({"sm_90", "0:ptx"}), 9, note), succeeds());
  EXPECT_EQ(loaded, ".ver");
  EXPECT_THAT(asked, testing::ElementsAre("add_one"));
  EXPECT_TRUE(sharedBytes.empty());
  format::KernelT kernel;
  kernel.entry = "own";
  kernel.shared_bytes = 100000;
  auto package =
      makePackage({"ptx", "0:sm_90a", "0:sm_80"}, cubin.bytes(), kernel);
  ASSERT_THAT(load(*package, 9, note), succeeds());
  EXPECT_EQ(loaded, "\177ELF");
  EXPECT_THAT(asked, testing::ElementsAre("own"));
  EXPECT_THAT(sharedBytes, testing::ElementsAre(100000));
  EXPECT_THAT(load(*package, 10, note),
              failsWith(Code::Device, "an sm_100, only: sm_90a, sm_80"));
  kernel.shared_bytes = 300000;
  EXPECT_THAT(load(*makePackage({"0:ptx"}, cubin.bytes(), kernel), 9, note),
              failsWith(Code::Device, "giving a block of kernel 'own' 300000 "
                                      "bytes of shared memory"));
}

TEST(CodeModule, ReadsWhatCubinsAreFor) {
  auto runs = [](const char *name, int major, int minor) {
    auto target = parseCubinTarget(name);
    return target && target->runsOn(major, minor);
  };
  EXPECT_TRUE(runs("sm_86", 8, 6));
  EXPECT_TRUE(runs("sm_86", 8, 9));
  EXPECT_FALSE(runs("sm_86", 8, 0));
  EXPECT_FALSE(runs("sm_86", 9, 0));
  EXPECT_TRUE(runs("sm_120f", 12, 1));
  EXPECT_TRUE(runs("sm_120a", 12, 0));
  EXPECT_FALSE(runs("sm_120a", 12, 1));
  for (const char *name :
       {"", "sm_", "ptx", "sm_90b", "sm_9999999999", "sm_-1", "90", "sm_90aa"})
    EXPECT_FALSE(parseCubinTarget(name)) << name;
}

TEST(CodeModule, RefusesCubinsThatAreNotWhole) {
  refusedFirst = 'x';
  std::string note;
  for (const auto &spoil : kSpoiledCubins) {
    Cubin cubin;
    spoil(cubin);
    EXPECT_FALSE(isWholeCubin(cubin.bytes()));
    EXPECT_THAT(load(*makePackage({"sm_90", "ptx"}, cubin.bytes()), 9, note),
                failsWith(Code::BadData, "is no cubin"));
    EXPECT_EQ(loaded, "");
  }
  Cubin cubin;
  for (size_t size = 0; size < sizeof(cubin); ++size)
    EXPECT_FALSE(isWholeCubin(cubin.bytes().first(size)));
}

/// A loader stays inside of what is taken for whole.
TEST(CodeModule, FlippedCubinsAreReadInBounds) {
  Cubin cubin;
  std::mt19937 random(5);
  int whole = 0;
  for (int i = 0; i < 20000; ++i) {
    std::vector<std::byte> flipped(cubin.bytes().begin(), cubin.bytes().end());
    for (int flip = 0; flip < 2; ++flip)
      flipped[random() % flipped.size()] ^= std::byte(1 << random() % 8);
    if (!isWholeCubin(flipped))
      continue;
    ++whole;
    readAll(flipped);
  }
  EXPECT_GT(whole, 1000);
}
