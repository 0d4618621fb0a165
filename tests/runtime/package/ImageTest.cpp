#include "runtime/package/Image.h"
#include "tests/runtime/Fixture.h"

#include <elf.h>
#include <random>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;

static Result<CodeImage> mapBytes(const std::vector<char> &bytes) {
  return CodeImage::map(std::as_bytes(std::span(bytes)));
}

static Elf64_Phdr *findSegment(std::vector<char> &image, uint32_t type,
                               uint32_t flags) {
  auto header = reinterpret_cast<Elf64_Ehdr *>(image.data());
  auto segments =
      reinterpret_cast<Elf64_Phdr *>(image.data() + header->e_phoff);
  for (int i = 0; i < header->e_phnum; ++i)
    if (segments[i].p_type == type && (segments[i].p_flags & flags) == flags)
      return &segments[i];
  return nullptr;
}

/// The permissions of the mapping that holds an address, as "r-xp".
static std::string permissionsAt(const void *address) {
  std::ifstream maps("/proc/self/maps");
  auto wanted = reinterpret_cast<uintptr_t>(address);
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    char permissions[5] = {};
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, permissions) ==
            3 &&
        wanted >= begin && wanted < end)
      return permissions;
  }
  return "";
}

TEST(Image, RunsAMappedKernelThroughRelocatedPointers) {
  ProgramBuilder builder;
  uint32_t in = builder.input("x", DType::f32, {});
  uint32_t out = builder.output("y", DType::f32, {});
  std::vector<uint32_t> buffers = {
      builder.buffer(format::StorageClass::input, in, 4),
      builder.buffer(format::StorageClass::output, out, 4)};
  std::vector<Expr> sizes;
  sizes.push_back(constant(1));
  sizes.push_back(constant(1));
  builder.launch("call_by_table", buffers, std::move(sizes), constant(1));
  auto context = makeContext(builder);
  std::vector<float> x = {3};
  ASSERT_THAT(bind(*context, 0, x, {}), succeeds());
  ASSERT_THAT(context->run(), succeeds());
  EXPECT_EQ(floatsOf(context->output(0)), std::vector<float>{-3});
}

TEST(Image, CodeIsNeverWritable) {
  std::vector<char> bytes = kernelImage();
  Elf64_Phdr *text = findSegment(bytes, PT_LOAD, PF_X);
  ASSERT_NE(text, nullptr);
  CodeImage image = unwrap(mapBytes(bytes));
  auto code = reinterpret_cast<const void *>(image.kernelAt(text->p_vaddr));
  EXPECT_EQ(permissionsAt(code), "r-xp");
}

TEST(Image, KernelsLieInCode) {
  std::vector<char> bytes = kernelImage();
  Elf64_Phdr *text = findSegment(bytes, PT_LOAD, PF_X);
  CodeImage image = unwrap(mapBytes(bytes));
  EXPECT_EQ(image.kernelAt(0), nullptr);
  EXPECT_EQ(image.kernelAt(text->p_vaddr + text->p_memsz), nullptr);
  EXPECT_EQ(image.kernelAt(UINT64_MAX), nullptr);
}

TEST(Image, RefusesSegmentsThatAreWritableAndExecutable) {
  std::vector<char> bytes = kernelImage();
  findSegment(bytes, PT_LOAD, PF_X)->p_flags |= PF_W;
  EXPECT_THAT(mapBytes(bytes).takeStatus(),
              failsWith(Code::BadData, "writable and executable"));
}

TEST(Image, RefusesSegmentsOutsideTheFile) {
  std::vector<char> bytes = kernelImage();
  findSegment(bytes, PT_LOAD, PF_X)->p_offset = bytes.size();
  EXPECT_THAT(mapBytes(bytes).takeStatus(),
              failsWith(Code::BadData, "outside"));
}

TEST(Image, RefusesOtherRelocations) {
  std::vector<char> bytes = kernelImage();
  auto header = reinterpret_cast<Elf64_Ehdr *>(bytes.data());
  auto sections =
      reinterpret_cast<Elf64_Shdr *>(bytes.data() + header->e_shoff);
  for (int i = 0; i < header->e_shnum; ++i)
    if (sections[i].sh_type == SHT_RELA)
      reinterpret_cast<Elf64_Rela *>(bytes.data() + sections[i].sh_offset)
          ->r_info = ELF64_R_INFO(1, R_X86_64_GLOB_DAT);
  EXPECT_THAT(mapBytes(bytes).takeStatus(),
              failsWith(Code::BadData, "expected relative only"));
}

TEST(Image, RefusesRelocationsOutsideItsData) {
  std::vector<char> bytes = kernelImage();
  auto header = reinterpret_cast<Elf64_Ehdr *>(bytes.data());
  auto sections =
      reinterpret_cast<Elf64_Shdr *>(bytes.data() + header->e_shoff);
  for (int i = 0; i < header->e_shnum; ++i)
    if (sections[i].sh_type == SHT_RELA)
      reinterpret_cast<Elf64_Rela *>(bytes.data() + sections[i].sh_offset)
          ->r_offset = UINT64_MAX - 3;
  EXPECT_THAT(mapBytes(bytes).takeStatus(),
              failsWith(Code::BadData, "relocation lies outside"));
}

TEST(Image, SurvivesTruncationAndBitFlips) {
  std::mt19937 random(5);
  std::vector<char> whole = kernelImage();
  const Elf64_Phdr &code = *findSegment(whole, PT_LOAD, PF_X);
  uint64_t loaded = code.p_offset + code.p_filesz;
  for (int i = 0; i < 500; ++i) {
    std::vector<char> bytes(whole.begin(),
                            whole.begin() + random() % whole.size());
    auto image = mapBytes(bytes);
    if (bytes.size() < loaded)
      EXPECT_FALSE(image.ok());
    if (!image.ok())
      EXPECT_THAT(image.takeStatus(), failsWith(Code::BadData, ""));
  }
  for (int i = 0; i < 2000; ++i) {
    std::vector<char> bytes = whole;
    bytes[random() % 1024] ^= 1 << random() % 8;
    auto image = mapBytes(bytes);
    if (!image.ok())
      EXPECT_THAT(image.takeStatus(), failsWith(Code::BadData, ""));
  }
}
