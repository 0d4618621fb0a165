#include "tools/tcc-run/Symbols.h"

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <fstream>
#include <unistd.h>
#include <vector>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;
using Bytes = std::span<const std::byte>;

/// The T at `offset`; zero if it does not lie inside.
template <typename T> static T readAt(Bytes bytes, uint64_t offset) {
  T value = {};
  if (offset <= bytes.size() && sizeof(T) <= bytes.size() - offset)
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

static std::string readName(Bytes bytes, uint64_t offset) {
  std::string name;
  while (char c = readAt<char>(bytes, offset++))
    name += c;
  return name;
}

namespace {

struct Function {
  uint64_t address, size; ///< in the image; in bytes
  std::string name;
};

} // namespace

/// By address. One that has no size, as assembly may not, extends to the next.
static std::vector<Function> listFunctions(Bytes image) {
  std::vector<Function> functions;
  auto header = readAt<Elf64_Ehdr>(image, 0);
  auto section = [&](uint64_t index) {
    return readAt<Elf64_Shdr>(image,
                              header.e_shoff + index * sizeof(Elf64_Shdr));
  };
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr table = section(i);
    if (table.sh_type != SHT_SYMTAB || table.sh_size > image.size())
      continue;
    Elf64_Shdr names = section(table.sh_link);
    for (uint64_t at = 0; at < table.sh_size; at += sizeof(Elf64_Sym)) {
      auto symbol = readAt<Elf64_Sym>(image, table.sh_offset + at);
      if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC)
        functions.push_back(
            {symbol.st_value, symbol.st_size,
             readName(image, names.sh_offset + symbol.st_name)});
    }
  }
  std::ranges::sort(functions, {}, &Function::address);
  for (Function &function : functions) {
    auto next = std::ranges::upper_bound(functions, function.address, {},
                                         &Function::address);
    if (function.size == 0 && next != functions.end())
      function.size = next->address - function.address;
  }
  std::erase_if(functions, [](const Function &each) { return each.size == 0; });
  return functions;
}

/// Lines of address, size and name: perf's format.
static std::string printFunctions(Bytes image, uint64_t base) {
  std::string lines;
  for (const Function &function : listFunctions(image)) {
    char place[64];
    std::snprintf(place, sizeof(place), "%lx %lx ", base + function.address,
                  function.size);
    lines += place + function.name + '\n';
  }
  return lines;
}

static Status writeFile(const std::string &path, const char *data,
                        size_t size) {
  std::ofstream stream(path, std::ios::binary);
  if (stream.write(data, size).flush())
    return Status();
  return makeError(Code::Io, "cannot write '", path, "'");
}

Result<std::string> tools::writeSymbols(const Executable &executable) {
  auto kernel = std::ranges::find_if(executable.kernels(),
                                     [](auto kernel) { return kernel; });
  if (kernel == executable.kernels().end())
    return std::string();
  Result<Memory> image =
      executable.package().readSection(executable.variant().image());
  if (!image.ok())
    return image.takeStatus();
  uint64_t base = reinterpret_cast<uint64_t>(*kernel) -
                  executable.variant().kernel_offsets()->Get(
                      kernel - executable.kernels().begin());
  std::string process = std::to_string(getpid());
  std::string lines = printFunctions(image->span(), base);
  if (Status status = writeFile("/tmp/perf-" + process + ".map", lines.data(),
                                lines.size());
      !status.ok())
    return status;
  std::string copy = "/tmp/tcc-" + process + ".so";
  Bytes bytes = image->span();
  if (Status status = writeFile(
          copy, reinterpret_cast<const char *>(bytes.data()), bytes.size());
      !status.ok())
    return status;
  return concat("add-symbol-file ", copy, " -o ", base);
}
