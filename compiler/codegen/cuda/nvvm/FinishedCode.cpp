#include "compiler/codegen/cuda/nvvm/FinishedCode.h"

#include "runtime/package/Cubin.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Object/ELF.h"
#include "llvm/Object/ELFTypes.h"
#include "llvm/Support/Endian.h"
#include <map>
#include <span>

using llvm::StringRef;
using llvm::Twine;

namespace tcc::cuda {

using Problems = std::vector<std::string>;

static constexpr unsigned kParameterBytes = 8;

static std::string describeCount(size_t found, unsigned expected) {
  return ("has " + Twine(found) + " parameters, expected " + Twine(expected) +
          ": the buffers and the sizes")
      .str();
}

//===----------------------------------------------------------------------===//
// PTX
//===----------------------------------------------------------------------===//

/// The text without comments.
static std::string stripComments(StringRef text) {
  std::string code;
  while (!text.empty()) {
    size_t begin = std::min(text.find("//"), text.find("/*"));
    code += text.take_front(begin);
    text = text.substr(begin);
    if (text.empty())
      break;
    bool isLine = text[1] == '/';
    size_t end = text.find(isLine ? "\n" : "*/", 2);
    text = end == StringRef::npos ? StringRef()
                                  : text.substr(end + (isLine ? 0 : 2));
    code += ' ';
  }
  return code;
}

static bool isNameCharacter(char c) {
  return llvm::isAlnum(c) || StringRef("_$%").contains(c);
}

static StringRef takeName(StringRef text) {
  return text.ltrim().take_while(isNameCharacter);
}

/// What code says of the threads of a block.
static void checkThreads(std::optional<uint64_t> required,
                         std::optional<uint64_t> most, unsigned threads,
                         Problems &problems) {
  if (required && *required != threads)
    problems.push_back(("is for blocks of " + Twine(*required) +
                        " threads, and launched with " + Twine(threads))
                           .str());
  if (most && *most < threads)
    problems.push_back(("is for blocks of up to " + Twine(*most) +
                        " threads, and launched with " + Twine(threads))
                           .str());
}

/// The product of the numbers after `directive` in what stands between an
/// entry's parameters and its body, as ".reqntid 128, 1, 1".
static std::optional<uint64_t> readThreads(StringRef directives,
                                           StringRef directive) {
  size_t at = directives.find(directive);
  if (at == StringRef::npos)
    return std::nullopt;
  StringRef list = directives.substr(at + directive.size());
  uint64_t product = 1;
  for (int axis = 0; axis < 3; ++axis) {
    uint32_t extent = 0;
    list = list.ltrim();
    if (list.consumeInteger(10, extent))
      return std::nullopt;
    product *= std::min<uint32_t>(extent, 1 << 16);
    list = list.ltrim();
    if (!list.consume_front(","))
      break;
  }
  return product;
}

namespace {

/// The head of a kernel in PTX.
struct EntryText {
  StringRef parameters; ///< in the parentheses
  StringRef directives; ///< from there to the body
};

} // namespace

static std::optional<EntryText> findEntry(StringRef code, StringRef symbol) {
  constexpr StringRef kEntry = ".entry";
  for (size_t at = code.find(kEntry); at != StringRef::npos;
       at = code.find(kEntry, at + 1)) {
    StringRef rest = code.substr(at + kEntry.size());
    if (rest.empty() || !llvm::isSpace(rest.front()) ||
        takeName(rest) != symbol)
      continue;
    rest = rest.ltrim().drop_front(symbol.size()).ltrim();
    if (!rest.consume_front("("))
      return EntryText();
    auto [parameters, body] = rest.split(')');
    return EntryText{parameters, body.take_front(body.find('{'))};
  }
  return std::nullopt;
}

/// A declaration as ".param .u64 .ptr .global .align 1 name".
static bool isWide(StringRef parameter) {
  llvm::SmallVector<StringRef> words;
  llvm::SplitString(parameter, words);
  auto isType = [](StringRef word) {
    return word == ".u64" || word == ".s64" || word == ".b64" || word == ".f64";
  };
  return !parameter.contains('[') && llvm::any_of(words, isType);
}

static void checkTarget(StringRef code, const Arch &least, Problems &problems) {
  constexpr StringRef kTarget = ".target";
  size_t at = code.find(kTarget);
  StringRef name =
      at == StringRef::npos ? "" : takeName(code.substr(at + kTarget.size()));
  std::string error;
  std::optional<Arch> target = parseArch(name, error);
  if (!target)
    problems.push_back("is for '" + name.take_front(40).str() +
                       "': PTX is for sm_80 or what came after, without a "
                       "suffix; else give a cubin");
  else if (target->number > least.number)
    problems.push_back("is for " + target->name);
}

std::vector<std::string> checkPtx(StringRef ptx, StringRef symbol,
                                  const Arch &least,
                                  const LaunchShape &launch) {
  Problems problems;
  ptx = ptx.rtrim('\0');
  if (ptx.contains('\0'))
    return {"is no text"};
  std::string code = stripComments(ptx);
  checkTarget(code, least, problems);
  std::optional<EntryText> entry = findEntry(code, symbol);
  if (!entry) {
    problems.push_back("has no .entry of that name");
    return problems;
  }
  llvm::SmallVector<StringRef> found;
  if (!entry->parameters.trim().empty())
    entry->parameters.split(found, ',');
  checkThreads(readThreads(entry->directives, ".reqntid"),
               readThreads(entry->directives, ".maxntid"), launch.threads,
               problems);
  if (found.size() != launch.parameters)
    problems.push_back(describeCount(found.size(), launch.parameters));
  for (auto [i, parameter] : llvm::enumerate(found))
    if (!isWide(parameter))
      problems.push_back(("has a parameter " + Twine(i) + " of not 64 bits: '" +
                          parameter.trim().take_front(60) + "'")
                             .str());
  return problems;
}

//===----------------------------------------------------------------------===//
// Cubins
//===----------------------------------------------------------------------===//

using Elf = llvm::object::ELF64LEFile;

/// As toolkits up to 12 and from 13 on write it.
static int getNumber(const Elf::Elf_Ehdr &header) {
  constexpr int kNewVersion = 8;
  uint32_t flags = header.e_flags;
  bool isNew = header.e_ident[llvm::ELF::EI_ABIVERSION] >= kNewVersion;
  return (isNew ? flags >> 8 : flags) & 0xff;
}

namespace {

/// What the section .nv.info.SYMBOL says of a kernel.
struct KernelNotes {
  std::map<unsigned, unsigned> sizes;     ///< bytes of each parameter
  std::optional<uint64_t> required, most; ///< threads of a block
};

} // namespace

/// Three numbers of 32 bits.
static uint64_t readProduct(llvm::ArrayRef<uint8_t> bytes) {
  uint64_t product = 1;
  for (int axis = 0; axis < 3; ++axis)
    product *= std::min<uint32_t>(
        llvm::support::endian::read32le(&bytes[4 * axis]), 1 << 16);
  return product;
}

/// The section is of records: a format, an attribute and 16 bits, which are the
/// value or say how many bytes follow.
static KernelNotes readNotes(llvm::ArrayRef<uint8_t> bytes) {
  constexpr uint8_t kSized = 4, kParameterInfo = 0x17, kMostThreads = 5,
                    kThreads = 0x10;
  constexpr unsigned kSizeShift = 18, kPayload = 12;
  KernelNotes notes;
  while (bytes.size() >= 4) {
    uint8_t format = bytes[0], attribute = bytes[1];
    size_t length =
        format == kSized ? llvm::support::endian::read16le(&bytes[2]) : 0;
    bytes = bytes.drop_front(4);
    if (length > bytes.size())
      break;
    bool isWhole = length >= kPayload;
    if (isWhole && attribute == kParameterInfo)
      notes.sizes[llvm::support::endian::read16le(&bytes[4])] =
          llvm::support::endian::read32le(&bytes[8]) >> kSizeShift;
    if (isWhole && attribute == kThreads)
      notes.required = readProduct(bytes);
    if (isWhole && attribute == kMostThreads)
      notes.most = readProduct(bytes);
    bytes = bytes.drop_front(length);
  }
  return notes;
}

/// The section's bytes; nullopt if there is none of that name.
static std::optional<llvm::ArrayRef<uint8_t>> findSection(const Elf &elf,
                                                          const Twine &name) {
  std::string wanted = name.str();
  auto sections = elf.sections();
  if (!sections) {
    llvm::consumeError(sections.takeError());
    return std::nullopt;
  }
  for (const Elf::Elf_Shdr &section : *sections) {
    auto found = elf.getSectionName(section);
    if (!found) {
      llvm::consumeError(found.takeError());
      continue;
    }
    if (*found != wanted)
      continue;
    auto bytes = elf.getSectionContents(section);
    if (bytes)
      return *bytes;
    llvm::consumeError(bytes.takeError());
  }
  return std::nullopt;
}

std::vector<std::string> checkCubin(StringRef cubin, StringRef symbol,
                                    int number, const LaunchShape &launch) {
  if (!runtime::isWholeCubin(
          std::as_bytes(std::span(cubin.data(), cubin.size()))))
    return {"is no whole cubin"};
  llvm::Expected<Elf> elf = Elf::create(cubin);
  if (!elf)
    return {"is no cubin: " + llvm::toString(elf.takeError())};
  Problems problems;
  if (int found = getNumber(elf->getHeader()); found != number)
    problems.push_back(("is for sm_" + Twine(found)).str());
  if (!findSection(*elf, ".text." + symbol)) {
    problems.push_back("has no kernel of that name");
    return problems;
  }
  KernelNotes notes =
      readNotes(findSection(*elf, ".nv.info." + symbol).value_or(std::nullopt));
  checkThreads(notes.required, notes.most, launch.threads, problems);
  if (notes.sizes.size() != launch.parameters)
    problems.push_back(describeCount(notes.sizes.size(), launch.parameters));
  for (auto [ordinal, size] : notes.sizes)
    if (size != kParameterBytes)
      problems.push_back(("has a parameter " + Twine(ordinal) + " of " +
                          Twine(size) + " bytes, not 8")
                             .str());
  return problems;
}

} // namespace tcc::cuda
