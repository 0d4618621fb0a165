#include "runtime/base/CpuFeatures.h"

#include <cctype>
#include <cpuid.h>
#include <cstdint>
#include <sys/syscall.h>
#include <unistd.h>

using namespace tcc;

namespace {

enum Register : uint8_t { EAX, EBX, ECX, EDX };

/// Bits of XCR0: the state that the operating system saves.
constexpr uint32_t kNoState = 0;
constexpr uint32_t kVectorState = 0x6;   // xmm, ymm
constexpr uint32_t kMaskState = 0xe6;    // and opmask, zmm
constexpr uint32_t kTileState = 0x60000; // amx

/// CPUID leaf, sub-leaf, register and bit (Intel SDM vol. 2A, CPUID).
struct Feature {
  std::string_view name;
  uint32_t leaf, subleaf;
  Register reg;
  uint8_t bit;
  uint32_t state;
};

constexpr Feature kFeatures[] = {
    {"x87", 1, 0, EDX, 0, kNoState},
    {"cx8", 1, 0, EDX, 8, kNoState},
    {"cmov", 1, 0, EDX, 15, kNoState},
    {"mmx", 1, 0, EDX, 23, kNoState},
    {"fxsr", 1, 0, EDX, 24, kNoState},
    {"sse", 1, 0, EDX, 25, kNoState},
    {"sse2", 1, 0, EDX, 26, kNoState},
    {"sse3", 1, 0, ECX, 0, kNoState},
    {"pclmul", 1, 0, ECX, 1, kNoState},
    {"ssse3", 1, 0, ECX, 9, kNoState},
    {"fma", 1, 0, ECX, 12, kVectorState},
    {"cx16", 1, 0, ECX, 13, kNoState},
    {"sse4.1", 1, 0, ECX, 19, kNoState},
    {"sse4.2", 1, 0, ECX, 20, kNoState},
    {"crc32", 1, 0, ECX, 20, kNoState},
    {"movbe", 1, 0, ECX, 22, kNoState},
    {"popcnt", 1, 0, ECX, 23, kNoState},
    {"aes", 1, 0, ECX, 25, kNoState},
    {"xsave", 1, 0, ECX, 27, kNoState},
    {"avx", 1, 0, ECX, 28, kVectorState},
    {"f16c", 1, 0, ECX, 29, kVectorState},
    {"rdrnd", 1, 0, ECX, 30, kNoState},
    {"fsgsbase", 7, 0, EBX, 0, kNoState},
    {"bmi", 7, 0, EBX, 3, kNoState},
    {"avx2", 7, 0, EBX, 5, kVectorState},
    {"bmi2", 7, 0, EBX, 8, kNoState},
    {"avx512f", 7, 0, EBX, 16, kMaskState},
    {"avx512dq", 7, 0, EBX, 17, kMaskState},
    {"rdseed", 7, 0, EBX, 18, kNoState},
    {"adx", 7, 0, EBX, 19, kNoState},
    {"avx512ifma", 7, 0, EBX, 21, kMaskState},
    {"clflushopt", 7, 0, EBX, 23, kNoState},
    {"clwb", 7, 0, EBX, 24, kNoState},
    {"avx512cd", 7, 0, EBX, 28, kMaskState},
    {"sha", 7, 0, EBX, 29, kNoState},
    {"avx512bw", 7, 0, EBX, 30, kMaskState},
    {"avx512vl", 7, 0, EBX, 31, kMaskState},
    {"avx512vbmi", 7, 0, ECX, 1, kMaskState},
    {"avx512vbmi2", 7, 0, ECX, 6, kMaskState},
    {"gfni", 7, 0, ECX, 8, kNoState},
    {"vaes", 7, 0, ECX, 9, kVectorState},
    {"vpclmulqdq", 7, 0, ECX, 10, kVectorState},
    {"avx512vnni", 7, 0, ECX, 11, kMaskState},
    {"avx512bitalg", 7, 0, ECX, 12, kMaskState},
    {"avx512vpopcntdq", 7, 0, ECX, 14, kMaskState},
    {"rdpid", 7, 0, ECX, 22, kNoState},
    {"movdiri", 7, 0, ECX, 27, kNoState},
    {"movdir64b", 7, 0, ECX, 28, kNoState},
    {"avx512vp2intersect", 7, 0, EDX, 8, kMaskState},
    {"amx-bf16", 7, 0, EDX, 22, kTileState},
    {"avx512fp16", 7, 0, EDX, 23, kMaskState},
    {"amx-tile", 7, 0, EDX, 24, kTileState},
    {"amx-int8", 7, 0, EDX, 25, kTileState},
    {"avxvnni", 7, 1, EAX, 4, kVectorState},
    {"avx512bf16", 7, 1, EAX, 5, kMaskState},
    {"amx-fp16", 7, 1, EAX, 21, kTileState},
    {"avxifma", 7, 1, EAX, 23, kVectorState},
    {"avxvnniint8", 7, 1, EDX, 4, kVectorState},
    {"avxneconvert", 7, 1, EDX, 5, kVectorState},
    {"avxvnniint16", 7, 1, EDX, 10, kVectorState},
    {"xsaveopt", 13, 1, EAX, 0, kNoState},
    {"xsavec", 13, 1, EAX, 1, kNoState},
    {"xsaves", 13, 1, EAX, 3, kNoState},
    {"sahf", 0x80000001, 0, ECX, 0, kNoState},
    {"lzcnt", 0x80000001, 0, ECX, 5, kNoState},
    {"sse4a", 0x80000001, 0, ECX, 6, kNoState},
    {"prfchw", 0x80000001, 0, ECX, 8, kNoState},
    {"fma4", 0x80000001, 0, ECX, 16, kVectorState},
    {"tbm", 0x80000001, 0, ECX, 21, kNoState},
    {"64bit", 0x80000001, 0, EDX, 29, kNoState},
    {"clzero", 0x80000008, 0, EBX, 0, kNoState},
    {"wbnoinvd", 0x80000008, 0, EBX, 9, kNoState},
};

/// The XCR0 register; 0 where the operating system has not enabled XSAVE.
uint32_t savedState() {
  uint32_t eax, ebx, ecx, edx;
  constexpr uint32_t osxsave = 1u << 27;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & osxsave))
    return 0;
  __asm__("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
  return eax;
}

/// Linux gives a process, with all its threads, the registers for tiles when it
/// first asks for them.
bool mayUseTiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  static const bool isPermitted =
      syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return isPermitted;
}

bool isSupported(const Feature &feature) {
  uint32_t regs[4];
  if (!__get_cpuid_count(feature.leaf, feature.subleaf, &regs[EAX], &regs[EBX],
                         &regs[ECX], &regs[EDX]))
    return false;
  if (!(regs[feature.reg] >> feature.bit & 1))
    return false;
  if ((savedState() & feature.state) != feature.state)
    return false;
  return feature.state != kTileState || mayUseTiles();
}

} // namespace

bool runtime::hasCpuFeature(std::string_view name) {
  for (const Feature &feature : kFeatures)
    if (feature.name == name)
      return isSupported(feature);
  return false;
}

void runtime::visitCpuFeatures(void (*visit)(void *, std::string_view),
                               void *user) {
  for (const Feature &feature : kFeatures)
    if (isSupported(feature))
      visit(user, feature.name);
}

int runtime::getArchitectureLevel() {
  static constexpr std::string_view kLevels[3][9] = {
      {"cx16", "sahf", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"},
      {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"},
      {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}};
  int level = 1;
  for (const auto &features : kLevels) {
    for (std::string_view feature : features)
      if (!feature.empty() && !hasCpuFeature(feature))
        return level;
    ++level;
  }
  return level;
}

std::string runtime::getCpuName() {
  // Intel SDM vol. 2A, CPUID: the brand string, with zeros behind it.
  constexpr uint32_t kFirst = 0x80000002, kLeaves = 3;
  uint32_t text[kLeaves * 4 + 1] = {};
  for (uint32_t leaf = 0; leaf < kLeaves; ++leaf) {
    uint32_t *part = text + leaf * 4;
    if (!__get_cpuid(kFirst + leaf, part, part + 1, part + 2, part + 3))
      return "x86-64";
  }
  std::string name;
  for (const char *c = reinterpret_cast<const char *>(text); *c; ++c)
    if (std::isgraph(static_cast<unsigned char>(*c)) ||
        (!name.empty() && name.back() != ' '))
      name += std::isgraph(static_cast<unsigned char>(*c)) ? *c : ' ';
  while (name.ends_with(' '))
    name.pop_back();
  return name.empty() ? "x86-64" : name;
}
