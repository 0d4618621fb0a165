//===- Numbers.h - Arithmetic of the code, not of tensors -------*- C++ -*-===//
#ifndef TCC_FRONTENDS_ATEN_NUMBERS_H
#define TCC_FRONTENDS_ATEN_NUMBERS_H

#include "frontends/aten/Tracer.h"

namespace tcc::aten {

/// True for a call that gives a number: a size of a tensor, or arithmetic whose
/// operands are numbers, or tensors that stand for some.
bool isOfNumbers(const Request &request);

/// The result of a function of numbers; nullopt, with the reason, if there is
/// no such function or it cannot be computed at import.
std::optional<Item> computeNumber(Tracer &tracer, llvm::StringRef name,
                                  llvm::ArrayRef<Item> arguments,
                                  std::string &refusal);

} // namespace tcc::aten

#endif // TCC_FRONTENDS_ATEN_NUMBERS_H
