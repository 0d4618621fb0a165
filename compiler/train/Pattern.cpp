#include "compiler/train/Pattern.h"

#include "runtime/base/Glob.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace tcc;
using namespace tcc::train;

bool Pattern::isSelector() const {
  return selects &&
         llvm::is_contained({"ndim<=1", "norm", "bias", "embedding"}, text);
}

bool Pattern::matches(const ParameterTraits &parameter) const {
  if (!isSelector())
    return runtime::matchesGlob(text, parameter.name);
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
