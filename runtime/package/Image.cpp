#include "runtime/package/Image.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <elf.h>
#include <sys/mman.h>

using namespace tcc;
using namespace tcc::runtime;

// glibc 2.36 has these; older headers do not.
#ifndef DT_RELR
#define DT_RELRSZ 35
#define DT_RELR 36
#endif

namespace {

constexpr uint64_t kPage = format::kPageSize;
/// Far more than the kernels of any model; keeps address arithmetic small.
constexpr uint64_t kMaxImageBytes = uint64_t(1) << 32;

template <typename... Parts> Status refuse(const Parts &...parts) {
  return makeError(Code::BadData, "code image: ", parts...);
}

uint64_t pageBegin(uint64_t address) { return address / kPage * kPage; }
uint64_t pageEnd(uint64_t address) { return pageBegin(address + kPage - 1); }

/// The parsed headers of an image. Addresses are relative to the image.
struct Layout {
  struct Table {
    uint64_t address = 0, bytes = 0;
  };

  std::vector<Elf64_Phdr> segments; ///< PT_LOAD, ascending, on own pages
  Elf64_Phdr dynamic = {};
  Elf64_Phdr relro = {};
  uint64_t bytes = 0; ///< of the address space
  Table rela, relr;
};

bool contains(const Elf64_Phdr &segment, uint64_t address, uint64_t bytes) {
  return address >= segment.p_vaddr && bytes <= segment.p_memsz &&
         address - segment.p_vaddr <= segment.p_memsz - bytes;
}

Status checkHeader(std::span<const std::byte> bytes, Elf64_Ehdr &header) {
  if (bytes.size() < sizeof(header))
    return refuse("shorter than an ELF header");
  std::memcpy(&header, bytes.data(), sizeof(header));
  bool isOurs = !std::memcmp(header.e_ident, ELFMAG, SELFMAG) &&
                header.e_ident[EI_CLASS] == ELFCLASS64 &&
                header.e_ident[EI_DATA] == ELFDATA2LSB &&
                header.e_machine == EM_X86_64 && header.e_type == ET_DYN &&
                header.e_phentsize == sizeof(Elf64_Phdr);
  if (!isOurs)
    return refuse("not a shared object for x86-64");
  uint64_t tableBytes = uint64_t(header.e_phnum) * sizeof(Elf64_Phdr);
  if (header.e_phoff > bytes.size() ||
      tableBytes > bytes.size() - header.e_phoff)
    return refuse("program headers lie outside");
  return Status();
}

Status addSegment(const Elf64_Phdr &segment, uint64_t fileBytes,
                  Layout &layout) {
  if (segment.p_memsz == 0)
    return Status();
  if (segment.p_filesz > segment.p_memsz || segment.p_offset > fileBytes ||
      segment.p_filesz > fileBytes - segment.p_offset ||
      segment.p_vaddr > kMaxImageBytes || segment.p_memsz > kMaxImageBytes)
    return refuse("a segment lies outside");
  if ((segment.p_flags & PF_W) && (segment.p_flags & PF_X))
    return refuse("a segment is writable and executable");
  if (pageBegin(segment.p_vaddr) < layout.bytes)
    return refuse("segments share a page");
  layout.segments.push_back(segment);
  layout.bytes = pageEnd(segment.p_vaddr + segment.p_memsz);
  return Status();
}

Status parseSegments(std::span<const std::byte> bytes, Layout &layout) {
  Elf64_Ehdr header;
  if (Status status = checkHeader(bytes, header); !status.ok())
    return status;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, bytes.data() + header.e_phoff + i * sizeof(segment),
                sizeof(segment));
    if (segment.p_type == PT_INTERP || segment.p_type == PT_TLS)
      return refuse("needs a dynamic loader");
    if (segment.p_type == PT_DYNAMIC)
      layout.dynamic = segment;
    if (segment.p_type == PT_GNU_RELRO)
      layout.relro = segment;
    if (segment.p_type != PT_LOAD)
      continue;
    if (Status status = addSegment(segment, bytes.size(), layout); !status.ok())
      return status;
  }
  if (layout.segments.empty())
    return refuse("nothing to load");
  return Status();
}

bool isLoaded(const Layout &layout, uint64_t address, uint64_t bytes) {
  return std::any_of(
      layout.segments.begin(), layout.segments.end(),
      [&](const Elf64_Phdr &s) { return contains(s, address, bytes); });
}

/// Refuses what a dynamic loader would have to do for the image.
Status parseDynamic(const std::byte *base, Layout &layout) {
  const Elf64_Phdr &dynamic = layout.dynamic;
  if (dynamic.p_memsz == 0)
    return Status();
  if (!isLoaded(layout, dynamic.p_vaddr, dynamic.p_memsz))
    return refuse("the dynamic section is not loaded");
  for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= dynamic.p_memsz;
       at += sizeof(Elf64_Dyn)) {
    Elf64_Dyn entry;
    std::memcpy(&entry, base + dynamic.p_vaddr + at, sizeof(entry));
    switch (entry.d_tag) {
    case DT_NULL:
      return Status();
    case DT_NEEDED:
    case DT_TEXTREL:
    case DT_REL:
    case DT_JMPREL:
    case DT_INIT:
    case DT_INIT_ARRAY:
    case DT_PREINIT_ARRAY:
    case DT_FINI:
    case DT_FINI_ARRAY:
      return refuse("needs a dynamic loader");
    case DT_RELA:
      layout.rela.address = entry.d_un.d_ptr;
      break;
    case DT_RELASZ:
      layout.rela.bytes = entry.d_un.d_val;
      break;
    case DT_RELR:
      layout.relr.address = entry.d_un.d_ptr;
      break;
    case DT_RELRSZ:
      layout.relr.bytes = entry.d_un.d_val;
      break;
    }
  }
  return Status();
}

/// Writes relocated addresses into an image that is still writable.
class Relocator {
public:
  Relocator(std::byte *base, const Layout &layout)
      : base(base), layout(layout) {}

  Status applyRela();
  Status applyRelr();

private:
  /// Where a relocation may be applied: a word of a writable segment.
  bool isWritable(uint64_t address) const {
    return std::any_of(layout.segments.begin(), layout.segments.end(),
                       [&](const Elf64_Phdr &s) {
                         return (s.p_flags & PF_W) &&
                                contains(s, address, sizeof(uint64_t));
                       });
  }
  Status store(uint64_t place, uint64_t target) {
    if (!isWritable(place) || target > layout.bytes)
      return refuse("a relocation lies outside");
    uint64_t address = reinterpret_cast<uint64_t>(base) + target;
    std::memcpy(base + place, &address, sizeof(address));
    return Status();
  }
  Status addBase(uint64_t place) {
    if (!isWritable(place))
      return refuse("a relocation lies outside");
    uint64_t target;
    std::memcpy(&target, base + place, sizeof(target));
    return store(place, target);
  }

  std::byte *base;
  const Layout &layout;
};

Status Relocator::applyRela() {
  const Layout::Table &table = layout.rela;
  if (table.bytes && !isLoaded(layout, table.address, table.bytes))
    return refuse("the relocations are not loaded");
  for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= table.bytes;
       at += sizeof(Elf64_Rela)) {
    Elf64_Rela entry;
    std::memcpy(&entry, base + table.address + at, sizeof(entry));
    uint32_t type = ELF64_R_TYPE(entry.r_info);
    if (type == R_X86_64_NONE)
      continue;
    if (type != R_X86_64_RELATIVE || ELF64_R_SYM(entry.r_info) != 0)
      return refuse("relocation of type ", type, ", expected relative only");
    if (Status status = store(entry.r_offset, entry.r_addend); !status.ok())
      return status;
  }
  return Status();
}

/// An even entry is an address; an odd one is a bit map of the 63 words after
/// the last (generic ABI, SHT_RELR).
Status Relocator::applyRelr() {
  const Layout::Table &table = layout.relr;
  if (table.bytes && !isLoaded(layout, table.address, table.bytes))
    return refuse("the relocations are not loaded");
  constexpr uint64_t kWord = sizeof(uint64_t);
  uint64_t next = 0;
  for (uint64_t at = 0; at + kWord <= table.bytes; at += kWord) {
    uint64_t entry;
    std::memcpy(&entry, base + table.address + at, sizeof(entry));
    if (entry % 2 == 0) {
      if (Status status = addBase(entry); !status.ok())
        return status;
      next = entry + kWord;
      continue;
    }
    for (unsigned bit = 1; bit < 64; ++bit) {
      if (!(entry >> bit & 1))
        continue;
      if (Status status = addBase(next + (bit - 1) * kWord); !status.ok())
        return status;
    }
    next += 63 * kWord;
  }
  return Status();
}

Status protect(std::byte *base, uint64_t begin, uint64_t end, int access) {
  if (mprotect(base + begin, end - begin, access) == 0)
    return Status();
  return makeError(Code::Device,
                   "cannot protect code pages: ", std::strerror(errno));
}

Status protectSegments(std::byte *base, const Layout &layout) {
  for (const Elf64_Phdr &segment : layout.segments) {
    int access = PROT_READ;
    if (segment.p_flags & PF_W)
      access |= PROT_WRITE;
    if (segment.p_flags & PF_X)
      access |= PROT_EXEC;
    if (Status status =
            protect(base, pageBegin(segment.p_vaddr),
                    pageEnd(segment.p_vaddr + segment.p_memsz), access);
        !status.ok())
      return status;
  }
  const Elf64_Phdr &relro = layout.relro;
  if (relro.p_memsz == 0)
    return Status();
  if (relro.p_memsz > layout.bytes || relro.p_vaddr > layout.bytes ||
      pageEnd(relro.p_vaddr + relro.p_memsz) > layout.bytes)
    return refuse("the read-only data lies outside");
  // As a dynamic loader does: whole pages only, the last one stays writable.
  uint64_t begin = pageBegin(relro.p_vaddr);
  uint64_t end = pageBegin(relro.p_vaddr + relro.p_memsz);
  return begin < end ? protect(base, begin, end, PROT_READ) : Status();
}

} // namespace

Result<CodeImage> CodeImage::map(std::span<const std::byte> bytes) {
  Layout layout;
  if (Status status = parseSegments(bytes, layout); !status.ok())
    return status;
  void *address = mmap(nullptr, layout.bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED)
    return makeError(Code::OutOfMemory, "cannot map ", layout.bytes,
                     " bytes of code: ", std::strerror(errno));
  CodeImage image;
  image.base = static_cast<std::byte *>(address);
  image.size = layout.bytes;
  for (const Elf64_Phdr &segment : layout.segments) {
    std::memcpy(image.base + segment.p_vaddr, bytes.data() + segment.p_offset,
                segment.p_filesz);
    if (segment.p_flags & PF_X)
      image.executable.push_back(
          {segment.p_vaddr, segment.p_vaddr + segment.p_memsz});
  }
  if (Status status = parseDynamic(image.base, layout); !status.ok())
    return status;
  Relocator relocator(image.base, layout);
  if (Status status = relocator.applyRela(); !status.ok())
    return status;
  if (Status status = relocator.applyRelr(); !status.ok())
    return status;
  if (Status status = protectSegments(image.base, layout); !status.ok())
    return status;
  return image;
}

CodeImage &CodeImage::operator=(CodeImage &&other) noexcept {
  std::swap(base, other.base);
  std::swap(size, other.size);
  std::swap(executable, other.executable);
  return *this;
}

CodeImage::~CodeImage() {
  if (base)
    munmap(base, size);
}

format::KernelFunction CodeImage::kernelAt(uint64_t offset) const {
  for (const Range &range : executable)
    if (offset >= range.begin && offset < range.end)
      return reinterpret_cast<format::KernelFunction>(base + offset);
  return nullptr;
}
