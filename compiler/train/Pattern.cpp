#include "compiler/train/Pattern.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace tcc::train;

/// On a mismatch only the last star is tried again with one character more:
/// what comes before it has matched as early as it can.
bool tcc::train::matchesGlob(llvm::StringRef glob, llvm::StringRef text) {
  size_t star = llvm::StringRef::npos, resume = 0, i = 0, j = 0;
  while (j < text.size()) {
    if (i < glob.size() && glob[i] == '*') {
      star = i++;
      resume = j;
    } else if (i < glob.size() && (glob[i] == '?' || glob[i] == text[j])) {
      ++i, ++j;
    } else if (star != llvm::StringRef::npos) {
      i = star + 1;
      j = ++resume;
    } else {
      return false;
    }
  }
  return glob.substr(i).ltrim('*').empty();
}

bool Pattern::isSelector() const {
  return selects &&
         llvm::is_contained({"ndim<=1", "norm", "bias", "embedding"}, text);
}

bool Pattern::matches(const ParameterTraits &parameter) const {
  if (!isSelector())
    return matchesGlob(text, parameter.name);
  return llvm::StringSwitch<bool>(text)
      .Case("ndim<=1", parameter.rank <= 1)
      .Case("norm", parameter.isNorm)
      .Case("bias", parameter.isBias)
      .Default(parameter.isEmbedding);
}

bool tcc::train::matchesAny(llvm::ArrayRef<Pattern> patterns,
                            const ParameterTraits &parameter) {
  return llvm::any_of(patterns, [&](const Pattern &pattern) {
    return pattern.matches(parameter);
  });
}
