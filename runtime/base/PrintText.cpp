#include "runtime/base/PrintText.h"

using namespace tcc;

std::string runtime::printText(std::string_view text, size_t longest) {
  std::string printed(text.substr(0, longest));
  for (char &c : printed)
    if (static_cast<unsigned char>(c) < ' ' || c == 127)
      c = '?';
  return text.size() > longest ? printed + "..." : printed;
}
