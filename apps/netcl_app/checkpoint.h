// Checkpoints: one safetensors file with the parameters under their slots' names, the optimiser's
// state under "optimizer.<state>.<slot>", and the run's state as JSON in its metadata. A copy of
// that JSON lies beside the file for people.
#ifndef NETCL_APPS_NETCL_APP_CHECKPOINT_H_
#define NETCL_APPS_NETCL_APP_CHECKPOINT_H_

#include <filesystem>
#include <string>

#include "core/base/json_doc.h"
#include "core/distributed/replica.h"
#include "core/nn/safetensors.h"

namespace netcl::app {

struct Checkpoint {
  Safetensors tensors;
  Json state;  // config (resolved), step, epoch, metrics, best
};

// Reads a checkpoint file, or the newest one of a run or checkpoints directory.
// Errors: kCheckpoint, naming the file and what is wrong with it.
Checkpoint read_checkpoint(const std::filesystem::path& path);
// The file that read_checkpoint reads. Errors: kCheckpoint.
std::filesystem::path find_checkpoint(const std::filesystem::path& path);

// Checks that a run with this configuration (resolved) and number of training samples can go on
// from the checkpoint: the same model, loss, batch size, seed and kind of optimizer. Rates,
// schedule and epochs may change. Errors: kCheckpoint, naming `name` and every difference.
void check_resumable(const Checkpoint& checkpoint, const Json& config, int64_t samples,
                     const std::string& name);

// Copies a replica's parameters and optimiser state into a checkpoint; waits for the device.
Checkpoint take_checkpoint(Replica& replica, Json state);
// The step of the last checkpoint in a run's directory of checkpoints; -1: there is none.
int64_t saved_step(const std::filesystem::path& directory);
// Writes PATH.safetensors and PATH.json, each by temporary file and rename. Errors: kCheckpoint.
void write_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint);

// Loads the parameters, their average where the replica keeps one and, if `with_state`, the
// optimiser's state into a replica.
// Errors: kCheckpoint, listing every difference between the file and the model.
void load_into(Replica& replica, const Checkpoint& checkpoint, bool with_state,
               const std::string& name);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_CHECKPOINT_H_
