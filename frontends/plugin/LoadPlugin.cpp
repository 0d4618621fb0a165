//===- LoadPlugin.cpp - From a library to operators -----------------------===//

#include "frontends/MappedFile.h"
#include "frontends/plugin/OperatorReader.h"
#include "runtime/package/Digest.h"
#include "llvm/ADT/StringExtras.h"
#include <cstring>
#include <dlfcn.h>

namespace tcc::plugin {

using llvm::StringRef;

static constexpr size_t kMaxOperators = 4096;

static void report(const std::string &path, ProblemClass kind,
                   const llvm::Twine &message, Problems &problems) {
  problems.add({kind, "", "", message.str(), path});
}

void Operators::add(const std::string &path, const tcc_plugin_v1 &plugin,
                    Problems &problems) {
  auto refuse = [&](const llvm::Twine &message) {
    report(path, ProblemClass::badBytes, message, problems);
  };
  if (plugin.abi != TCC_OP_ABI || plugin.bytes_of_this != sizeof(plugin))
    return refuse("is for version " + llvm::Twine(plugin.abi) +
                  " of tcc/op.h with descriptions of " +
                  llvm::Twine(plugin.bytes_of_this) +
                  " bytes, expected version " + llvm::Twine(TCC_OP_ABI) +
                  " with " + llvm::Twine(sizeof(plugin)));
  for (const char *text : {plugin.name, plugin.version})
    if (!text || strnlen(text, 257) > 256)
      return refuse("name and version: are missing or longer than 256 bytes");
  if (plugin.operator_count > kMaxOperators)
    return refuse("lists " + llvm::Twine(plugin.operator_count) +
                  " operators, at most " + llvm::Twine(kMaxOperators));
  if (!plugin.operators || plugin.operator_count == 0)
    return refuse("lists no operators");
  plugins.push_back({plugin.name, plugin.version, ""});
  for (size_t i = 0; i < plugin.operator_count; ++i) {
    OperatorReader reader(path, i, problems);
    auto op = reader.read(plugin.operators[i]);
    if (!op)
      continue;
    auto &slot = operators[op->name][op->since];
    if (slot)
      reader.report("is there twice, also in " + slot->plugin);
    else
      slot = std::move(op);
  }
}

std::optional<std::string> digestLibrary(const std::string &path,
                                         std::string &reason) {
  auto file = mapFile(path, reason);
  if (!file)
    return std::nullopt;
  auto bytes = std::as_bytes(std::span(file->bytes));
  return llvm::toHex(runtime::digestOf(bytes).bytes, /*LowerCase=*/true);
}

void Operators::load(const std::string &path, Problems &problems) {
  std::string reason;
  auto digest = digestLibrary(path, reason);
  if (!digest)
    return report(path, ProblemClass::io, "cannot be read: " + reason,
                  problems);
  // A name without a slash would be looked for elsewhere.
  std::string place = StringRef(path).contains('/') ? path : "./" + path;
  void *library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return report(path, ProblemClass::badBytes,
                  llvm::Twine("cannot be opened: ") + dlerror(), problems);
  auto *plugin =
      static_cast<const tcc_plugin_v1 *>(dlsym(library, "tcc_plugin"));
  if (!plugin)
    return report(path, ProblemClass::badBytes,
                  "exports no tcc_plugin: it is no plugin of tcc", problems);
  size_t count = plugins.size();
  add(path, *plugin, problems);
  if (plugins.size() > count)
    plugins.back().digest = *digest;
}

std::vector<const Operator *> Operators::getAll() const {
  std::vector<const Operator *> all;
  for (const auto &[name, versions] : operators)
    for (const auto &[since, op] : versions)
      all.push_back(op.get());
  return all;
}

void Operators::ignoreKernels() {
  for (auto &[name, versions] : operators)
    for (auto &[since, op] : versions)
      if (op->body)
        op->kernels.clear();
}

const Operator *Operators::find(StringRef name, int64_t version) const {
  auto found = operators.find(name);
  if (found == operators.end())
    return nullptr;
  auto behind = found->second.upper_bound(version);
  return behind == found->second.begin() ? nullptr
                                         : std::prev(behind)->second.get();
}

} // namespace tcc::plugin
