// Loads the data of a run: reads the files, splits them, and puts them into shared memory.
//
// Split: without a test file, `split` [a, b] shuffles the n samples by the run's seed (shuffled()
// in core/data/batches.h, stream kSplitStream); the first round(a*n) are for training, the next
// round(b*n) (cut at n) for the test, each kept in the file's order. The same seed and file give
// the same split on every machine. A text is cut instead: the last part is the test. Threads: any.
#ifndef NETCL_APPS_NETCL_APP_FORMATS_LOAD_H_
#define NETCL_APPS_NETCL_APP_FORMATS_LOAD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/netcl_app/formats/data_config.h"
#include "apps/netcl_app/formats/samples.h"
#include "core/data/dataset.h"

namespace netcl::app {

// Far from the streams of the epochs' shuffles, which count from 0.
constexpr uint64_t kSplitStream = 0x73706c6974ull;  // "split"

// Where the samples of a data set came from, for messages.
struct DataSource {
  std::string path;
  bool lines = false;         // `rows` are lines of the file; otherwise sample numbers from 0
  std::vector<int64_t> rows;  // one a sample

  // "digits.csv:12", or "train-images: sample 12".
  std::string where(int64_t sample) const;
};

struct LoadedData {
  Dataset train;
  std::optional<Dataset> test;  // set when there is a test file or a test part
  DataSource train_source;
  DataSource test_source;
};

// Errors: kData for files that cannot be read or hold no sample, for parts without a sample, and
// for a test set whose samples have another shape than the training set's. `known_classes`: the
// names and their order, as a checkpoint holds them; without, they come from the data.
LoadedData load_data(const DataConfig& config, const std::vector<std::string>& known_classes = {});

// Puts samples into shared memory.
Dataset to_dataset(const Samples& samples, int64_t num_classes, double scale);

// Errors: kData, with the row and value, if a label does not fit `num_outputs` classes; says so
// when the labels look 1-based. Labels that are `ignored` may have any value.
void check_labels(const Dataset& dataset, int64_t num_outputs, const DataSource& source = {},
                  int64_t ignored = kIgnoredLabel);

// Errors: kData, with the row and value, if a float target lies outside of what the loss `name`
// takes: 0 to 1 for bce_with_logits, from 0 on for kl_div unless its targets are logarithms.
void check_targets(const Dataset& dataset, const std::string& name, bool logarithms,
                   const DataSource& source = {});

// Errors: kData, with the row and value, if a token does not fit the model's vocabulary (0: not
// known, nothing is checked).
void check_tokens(const Dataset& dataset, int64_t vocabulary, const DataSource& source = {});

// Errors: kData if a sample has another number of elements than the model's input takes.
void check_input(const Dataset& dataset, const Shape& input, const DataSource& source = {});

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_FORMATS_LOAD_H_
