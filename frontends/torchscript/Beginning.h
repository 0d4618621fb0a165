//===- Beginning.h - What states are at first -------------------*- C++ -*-===//
#ifndef TCC_FRONTENDS_TORCHSCRIPT_BEGINNING_H
#define TCC_FRONTENDS_TORCHSCRIPT_BEGINNING_H

#include "frontends/Frontend.h"

namespace tcc::torchscript {

/// Code often begins with an empty tensor for a state and puts zeros in its
/// place itself. `first` is a model as it is called first, with its own
/// attributes, `model` the same with states as further inputs. True if they
/// give the same on seeded inputs where the states are zero; else, or if that
/// cannot be computed, reports it.
bool beginAlike(Model &first, Model &model, Problems &problems);

} // namespace tcc::torchscript

#endif // TCC_FRONTENDS_TORCHSCRIPT_BEGINNING_H
