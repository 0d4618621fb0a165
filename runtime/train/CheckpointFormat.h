//===- CheckpointFormat.h - What a checkpoint is of -------------*- C++ -*-===//
#ifndef TCC_RUNTIME_TRAIN_CHECKPOINTFORMAT_H
#define TCC_RUNTIME_TRAIN_CHECKPOINTFORMAT_H

#include "runtime/train/Session.h"

#include <nlohmann/json.hpp>

namespace tcc::runtime {

inline constexpr char kManifestFile[] = "manifest.json";
/// For other readers of safetensors: the manifest says all that it does.
inline constexpr char kIndexFile[] = "model.safetensors.index.json";
inline constexpr std::string_view kStepPrefix = "step-";
/// What one that is replaced is called meanwhile: it counts where there is no
/// other of its step.
inline constexpr std::string_view kReplacedSuffix = ".old";
/// What follows the name while it is written, before the process.
inline constexpr std::string_view kUnfinished = ".tmp";

/// What a session's variables are for, whatever parts of them lie here: another
/// optimizer or model has another.
std::string fingerprintOf(const Variables &variables);

/// KEY=VALUE lines of what the package compiled in.
nlohmann::ordered_json recipeOf(const TrainingSession &session);

/// Fails after `place` batches of an update, where no checkpoint has what was
/// accumulated: it is each rank's own, or a part of a tree.
Status checkPlace(const TrainingSession &session, int64_t place);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_TRAIN_CHECKPOINTFORMAT_H
