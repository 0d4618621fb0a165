#include "frontends/pt2/Json.h"

namespace tcc::pt2 {

using llvm::StringRef;

/// Readers of what is nested call themselves.
constexpr int kMaxDepth = 128;

/// The parser itself does not recurse; brackets within strings do not count.
static bool isShallow(StringRef text) {
  int depth = 0;
  bool isText = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (isText && c == '\\')
      ++i;
    else if (c == '"')
      isText = !isText;
    else if (!isText && (c == '[' || c == '{') && ++depth > kMaxDepth)
      return false;
    else if (!isText && (c == ']' || c == '}'))
      --depth;
  }
  return true;
}

std::optional<Json> parseJson(StringRef text) {
  if (!isShallow(text))
    return std::nullopt;
  Json json = Json::parse(text.begin(), text.end(), nullptr, false);
  if (json.is_discarded())
    return std::nullopt;
  return json;
}

const Json *find(const Json &object, StringRef key) {
  if (!object.is_object())
    return nullptr;
  auto found = object.find(key.str());
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

const std::vector<Json> &getList(const Json *list) {
  static const std::vector<Json> empty;
  const auto *items = list ? list->get_ptr<const Json::array_t *>() : nullptr;
  return items ? *items : empty;
}

std::string getText(const Json &object, StringRef key) {
  const Json *value = find(object, key);
  const auto *text = value ? value->get_ptr<const Json::string_t *>() : nullptr;
  return text ? *text : "";
}

std::optional<int64_t> getInteger(const Json *number) {
  if (!number || !number->is_number_integer())
    return std::nullopt;
  return number->get<int64_t>();
}

std::optional<double> getReal(const Json *number) {
  if (number && number->is_number())
    return number->get<double>();
  const auto *text =
      number ? number->get_ptr<const Json::string_t *>() : nullptr;
  if (!text)
    return std::nullopt;
  if (*text == "Infinity" || *text == "inf")
    return std::numeric_limits<double>::infinity();
  if (*text == "-Infinity" || *text == "-inf")
    return -std::numeric_limits<double>::infinity();
  if (*text == "NaN" || *text == "nan")
    return std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

Choice getChoice(const Json &object) {
  if (object.is_object())
    for (const auto &[key, value] : object.items())
      if (!value.is_null())
        return {key, &value};
  return {};
}

} // namespace tcc::pt2
