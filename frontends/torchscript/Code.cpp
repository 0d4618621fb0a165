#include "frontends/torchscript/Code.h"

namespace tcc::torchscript {

using llvm::StringRef;
using Kind = Node::Kind;
using NodePtr = std::unique_ptr<Node>;

bool Code::read(const Archive &archive, std::string &error) {
  for (const Archive::Entry &entry : archive.getEntries()) {
    StringRef path = entry.name;
    if (!path.consume_front("code/") || !path.consume_back(".py"))
      continue;
    auto text = archive.read(entry, error);
    if (!text)
      return false;
    auto file = parseSource(*text, error);
    if (!file) {
      error = entry.name.str() + ", " + error;
      return false;
    }
    std::string prefix = path.str();
    std::replace(prefix.begin(), prefix.end(), '/', '.');
    define(std::move(file), prefix + ".", path.str() + ".py");
  }
  error = "has no code";
  return !files.empty();
}

bool Code::add(StringRef text, const std::string &file, std::string &error) {
  auto tree = parseSource(text, error);
  if (!tree)
    return false;
  define(std::move(tree), "", file);
  return true;
}

const Node *Code::addExpression(StringRef text,
                                llvm::ArrayRef<std::string> parameters,
                                const std::string &file, std::string &error) {
  auto function = parseExpression(text, parameters, error);
  if (!function)
    return nullptr;
  fileOf[function.get()] = file;
  files.push_back(std::move(function));
  return files.back().get();
}

void Code::define(NodePtr tree, const std::string &prefix,
                  const std::string &file) {
  for (const auto &node : tree->children) {
    if (node->kind != Kind::definition && node->kind != Kind::function)
      continue;
    definitions[prefix + node->text] = node.get();
    fileOf[node.get()] = file;
    if (node->kind == Kind::definition)
      for (const auto &method : (*node)[1].children)
        fileOf[method.get()] = file;
  }
  files.push_back(std::move(tree));
}

const Node *Code::find(StringRef name) const {
  return definitions.lookup(name);
}

const Node *Code::findMethod(StringRef className, StringRef name) const {
  const Node *definition = find(className);
  if (!definition || definition->kind != Kind::definition)
    return nullptr;
  for (const auto &member : (*definition)[1].children)
    if (member->kind == Kind::function && member->text == name)
      return member.get();
  return nullptr;
}

const Node *Code::findConstant(StringRef className, StringRef name) const {
  const Node *definition = find(className);
  if (!definition || definition->kind != Kind::definition)
    return nullptr;
  for (const auto &member : (*definition)[1].children)
    if (member->kind == Kind::declare && member->size() == 3 &&
        (*member)[0].text == name)
      return &(*member)[2];
  return nullptr;
}

std::vector<std::string> Code::getNames(StringRef className,
                                        StringRef list) const {
  std::vector<std::string> names;
  const Node *definition = find(className);
  if (!definition || definition->kind != Kind::definition)
    return names;
  for (const auto &member : (*definition)[1].children)
    if (member->kind == Kind::assign && (*member)[0].text == list)
      for (const auto &name : (*member)[1].children)
        names.push_back(name->text);
  return names;
}

std::string Code::getPlace(const Node &function, int line) const {
  auto file = fileOf.find(&function);
  return (file == fileOf.end() ? "" : file->second + ":") +
         std::to_string(line);
}

} // namespace tcc::torchscript
