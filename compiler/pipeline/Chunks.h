//===- Chunks.h - Logits whole or in chunks ---------------------*- C++ -*-===//
#ifndef TCC_COMPILER_PIPELINE_CHUNKS_H
#define TCC_COMPILER_PIPELINE_CHUNKS_H

#include "compiler/pipeline/Build.h"

namespace tcc {

/// Builds the program with whole logits and, where a budget makes that one
/// compute values again and they are wide, the one with chunks of them. Gives
/// the faster one that fits, or the refusal that asks for less.
BuildResult buildFaster(const Model &model, const Variant &variant);

} // namespace tcc

#endif // TCC_COMPILER_PIPELINE_CHUNKS_H
