#include "compiler/codegen/cuda/nvvm/Arch.h"

using namespace tcc::cuda;

std::optional<Arch> tcc::cuda::parseArch(llvm::StringRef name,
                                         std::string &error) {
  llvm::StringRef digits = name;
  unsigned number = 0;
  if (digits.consume_front("sm_") && !digits.getAsInteger(10, number) &&
      number >= 80 && number < 1000)
    return Arch{name.str(), int(number)};
  error = "unknown arch '" + name.str() + "'; expected sm_80, sm_90, sm_100 " +
          "or another one from sm_80 on, without a suffix";
  return std::nullopt;
}
