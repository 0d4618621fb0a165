#include "runtime/package/Cubin.h"

#include <charconv>
#include <cstdint>
#include <cstring>
#include <elf.h>

using namespace tcc;
using namespace tcc::runtime;

static constexpr uint16_t kCudaMachine = 190; // EM_CUDA

namespace {

/// Reads headers where they lie, which may be anywhere.
class CubinReader {
public:
  explicit CubinReader(std::span<const std::byte> bytes) : bytes(bytes) {}

  bool isWhole();

private:
  bool fits(uint64_t offset, uint64_t size) const {
    return offset <= bytes.size() && size <= bytes.size() - offset;
  }
  /// Requires that it fits.
  template <typename T> T read(uint64_t offset) const {
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof(value));
    return value;
  }
  Elf64_Shdr section(size_t index) const {
    return read<Elf64_Shdr>(header.e_shoff + index * sizeof(Elf64_Shdr));
  }
  bool isHeaderWhole();
  bool isSegmentWhole(const Elf64_Phdr &segment) const;
  bool isSectionWhole(const Elf64_Shdr &section, const Elf64_Shdr &names) const;
  bool isText(const Elf64_Shdr &section) const;

  std::span<const std::byte> bytes;
  Elf64_Ehdr header = {};
};

} // namespace

bool CubinReader::isHeaderWhole() {
  if (!fits(0, sizeof(header)))
    return false;
  header = read<Elf64_Ehdr>(0);
  return !std::memcmp(header.e_ident, ELFMAG, SELFMAG) &&
         header.e_ident[EI_CLASS] == ELFCLASS64 &&
         header.e_ident[EI_DATA] == ELFDATA2LSB &&
         header.e_machine == kCudaMachine &&
         header.e_shentsize == sizeof(Elf64_Shdr) &&
         (header.e_phnum == 0 || header.e_phentsize == sizeof(Elf64_Phdr)) &&
         header.e_shoff % alignof(Elf64_Shdr) == 0 &&
         header.e_phoff % alignof(Elf64_Phdr) == 0 &&
         fits(header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr)) &&
         fits(header.e_phoff, header.e_phnum * sizeof(Elf64_Phdr)) &&
         header.e_shstrndx < header.e_shnum;
}

/// A table of strings, each of which ends in it.
bool CubinReader::isText(const Elf64_Shdr &section) const {
  return section.sh_type == SHT_STRTAB && section.sh_size > 0 &&
         fits(section.sh_offset, section.sh_size) &&
         bytes[section.sh_offset + section.sh_size - 1] == std::byte(0);
}

bool CubinReader::isSegmentWhole(const Elf64_Phdr &segment) const {
  return fits(segment.p_offset, segment.p_filesz) &&
         (segment.p_type != PT_LOAD || segment.p_filesz <= segment.p_memsz);
}

bool CubinReader::isSectionWhole(const Elf64_Shdr &section,
                                 const Elf64_Shdr &names) const {
  if (section.sh_type == SHT_NULL)
    return true;
  if (section.sh_name >= names.sh_size || section.sh_link >= header.e_shnum)
    return false;
  if (section.sh_type == SHT_NOBITS)
    return true;
  if (!fits(section.sh_offset, section.sh_size))
    return false;
  if (section.sh_type != SHT_SYMTAB)
    return true;
  Elf64_Shdr text = this->section(section.sh_link);
  if (section.sh_entsize != sizeof(Elf64_Sym) ||
      section.sh_offset % alignof(Elf64_Sym) != 0 || !isText(text))
    return false;
  for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= section.sh_size;
       at += sizeof(Elf64_Sym))
    if (read<Elf64_Sym>(section.sh_offset + at).st_name >= text.sh_size)
      return false;
  return true;
}

bool CubinReader::isWhole() {
  if (!isHeaderWhole())
    return false;
  Elf64_Shdr names = section(header.e_shstrndx);
  if (!isText(names))
    return false;
  for (size_t i = 0; i < header.e_phnum; ++i)
    if (!isSegmentWhole(
            read<Elf64_Phdr>(header.e_phoff + i * sizeof(Elf64_Phdr))))
      return false;
  for (size_t i = 0; i < header.e_shnum; ++i)
    if (!isSectionWhole(section(i), names))
      return false;
  return true;
}

bool runtime::isWholeCubin(std::span<const std::byte> bytes) {
  return CubinReader(bytes).isWhole();
}

std::optional<CubinTarget> runtime::parseCubinTarget(std::string_view name) {
  if (!name.starts_with("sm_"))
    return std::nullopt;
  name.remove_prefix(3);
  int number = 0;
  const char *end = name.data() + name.size();
  auto [rest, error] = std::from_chars(name.data(), end, number);
  std::string_view suffix(rest, end - rest);
  if (error != std::errc() || number < 0 ||
      (suffix != "" && suffix != "a" && suffix != "f"))
    return std::nullopt;
  return CubinTarget{number / 10, number % 10, suffix == "a"};
}
