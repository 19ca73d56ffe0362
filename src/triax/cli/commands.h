// The commands. Each returns the exit code and throws Error (exit 1) or UsageError (exit 2).
#pragma once

#include "triax/cli/options.h"

namespace triax::cli {

int execute(const RunCommand& command);
int execute(const ChatCommand& command);
int execute(const ServeCommand& command);
int execute(const LogitsCommand& command);
int execute(const EvalCommand& command);
int execute(const BenchCommand& command);
int execute(const TokenizeCommand& command);
int execute(const DetokenizeCommand& command);
int execute(const InspectCommand& command);
int execute(const SynthCommand& command);
int execute(const PackCommand& command);
int execute(const TrainCommand& command);
int execute(const DistillCommand& command);
int execute(const DataCommand& command);
int execute(const SelftestCommand& command);
int execute(const DoctorCommand& command);

}  // namespace triax::cli
