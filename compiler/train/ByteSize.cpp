#include "compiler/train/ByteSize.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

std::optional<int64_t> tcc::parseByteSize(std::string_view text) {
  llvm::StringRef all(text.data(), text.size());
  llvm::StringRef digits =
      all.take_while([](char c) { return llvm::isDigit(c) || c == '.'; });
  double unit = llvm::StringSwitch<double>(all.drop_front(digits.size()).trim())
                    .Cases("", "B", 1)
                    .Case("KiB", 1024.0)
                    .Case("MiB", 1048576.0)
                    .Case("GiB", 1073741824.0)
                    .Case("TiB", 1099511627776.0)
                    .Case("KB", 1e3)
                    .Case("MB", 1e6)
                    .Case("GB", 1e9)
                    .Case("TB", 1e12)
                    .Default(0);
  double number = 0;
  constexpr double kMost = 1e18;
  if (digits.getAsDouble(number) || unit == 0 || number * unit > kMost)
    return std::nullopt;
  return int64_t(number * unit);
}
