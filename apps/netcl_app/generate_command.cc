// netcl-app generate: text from a language model, one character after the other.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <numeric>

#include "apps/netcl_app/commands.h"
#include "apps/netcl_app/formats/text.h"
#include "apps/netcl_app/forward_model.h"
#include "core/data/batches.h"

namespace netcl::app {

namespace {

constexpr uint64_t kSampling = 0x73616d706c65ull;  // the stream of random numbers

struct GenerateOptions : CommonOptions {
  std::string checkpoint, prompt, device;
  int64_t length = 200, top_k = 0, seed = 0;
  double temperature = 1;
};

// Draws a token by softmax(scores / temperature) over the top_k best (0: all), in double precision.
// Temperature 0 takes the best. `draw` is uniform in [0, 1).
int32_t sample(const float* scores, int64_t count, double temperature, int64_t top_k, double draw) {
  std::vector<int32_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return scores[a] > scores[b]; });
  if (temperature == 0) return order[0];
  if (top_k > 0 && top_k < count) order.resize(static_cast<size_t>(top_k));
  std::vector<double> weights;
  double sum = 0;
  for (const int32_t token : order) {
    const double away = static_cast<double>(scores[token]) - static_cast<double>(scores[order[0]]);
    weights.push_back(std::exp(away / temperature));
    sum += weights.back();
  }
  double left = draw * sum;
  for (size_t i = 0; i < order.size(); ++i) {
    left -= weights[i];
    if (left < 0) return order[i];
  }
  return order.back();
}

// The model must score every position of its window.
void check_model(const ForwardModel& model, const Vocabulary& vocabulary) {
  const std::vector<int64_t>& input = model.config().input;
  NETCL_CHECK(model.config().data.format == DataFormat::kText && input.size() == 1,
              ErrorCode::kUsage, model.path(),
              ": this is no language model: it was not trained on data of the format \"text\"; use "
              "predict");
  NETCL_CHECK(model.output_shape().num_elements() % input[0] == 0 &&
                  model.output_shape().num_elements() / input[0] >= vocabulary.size(),
              ErrorCode::kUsage, model.path(), ": the output ", model.output_shape().str(),
              " does not score the ", vocabulary.size(), " characters at each of ", input[0],
              " positions");
}

std::vector<int32_t> first_tokens(const GenerateOptions& options, const Vocabulary& vocabulary) {
  std::vector<int32_t> out = vocabulary.tokens_of(options.prompt, "--prompt");
  if (!out.empty()) return out;
  // Without a prompt: as after the end of a line, if the text had any.
  for (int32_t token = 0; token < vocabulary.size(); ++token) {
    if (vocabulary.text_of(token) == "\n") return {token};
  }
  return {0};
}

std::string generate(const GenerateOptions& options, ForwardModel& model,
                     const Vocabulary& vocabulary) {
  const auto window = static_cast<size_t>(model.config().input[0]);
  const auto scores_of_position = static_cast<size_t>(model.output_shape().num_elements()) / window;
  std::vector<int32_t> tokens = first_tokens(options, vocabulary);
  std::string out;
  for (int64_t i = 0; i < options.length; ++i) {
    // The latest tokens first in the window; what follows them cannot be seen from before it.
    const size_t count = std::min(window, tokens.size());
    std::vector<int32_t> x(tokens.end() - static_cast<std::ptrdiff_t>(count), tokens.end());
    x.resize(window, 0);
    const std::vector<float> scores = model.run(x.data(), 1);
    const uint64_t bits =
        random_bits(static_cast<uint64_t>(options.seed), kSampling, static_cast<uint64_t>(i));
    const float* last = scores.data() + (count - 1) * scores_of_position;
    for (int64_t v = 0; v < vocabulary.size(); ++v) {
      NETCL_CHECK(std::isfinite(last[v]), ErrorCode::kTraining, model.path(),
                  ": the model's scores are no numbers; its training diverged");
    }
    tokens.push_back(sample(last, vocabulary.size(), options.temperature, options.top_k,
                            static_cast<double>(bits >> 11) * 0x1p-53));
    out += vocabulary.text_of(tokens.back());
  }
  return out;
}

int run_generate(const GenerateOptions& options) {
  NETCL_CHECK(std::isfinite(options.temperature), ErrorCode::kUsage, "--temperature ",
              options.temperature, ": expected a number from 0 on");
  ForwardModel model(options.checkpoint, options.device, options, 1);
  const Vocabulary vocabulary =
      model.data().classes.empty() ? Vocabulary() : Vocabulary(model.data().classes, model.path());
  check_model(model, vocabulary);
  const std::string text = generate(options, model, vocabulary);
  if (!options.json) {
    std::cout << options.prompt << text << "\n";
    return 0;
  }
  const Json result = {{"prompt", options.prompt}, {"text", text},
                       {"length", options.length}, {"temperature", options.temperature},
                       {"top_k", options.top_k},   {"seed", options.seed},
                       {"device", model.device()}};
  // Bytes need not be UTF-8.
  std::cout << result.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  return 0;
}

}  // namespace

void add_generate_command(CLI::App& app, Run& run) {
  auto options = std::make_shared<GenerateOptions>();
  CLI::App* command = app.add_subcommand("generate", "Text from a trained language model");
  command->footer(
      "Example: netcl-app generate runs/gpt --prompt \"In the beginning\" --length 300 "
      "--temperature 0.8 --top-k 20 --seed 1");
  command
      ->add_option("CHECKPOINT", options->checkpoint,
                   "Checkpoint file, or run directory (its last checkpoint)")
      ->required();
  command->add_option("--length", options->length, "Characters to write")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}))
      ->capture_default_str();
  command->add_option("--prompt", options->prompt, "Text to go on from");
  command
      ->add_option("--temperature", options->temperature,
                   "Below 1: likely characters more often; 0: always the likeliest")
      ->check(CLI::Range(0.0, 1e3))
      ->capture_default_str();
  command->add_option("--top-k", options->top_k, "Choose among this many likeliest; 0: among all")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 31))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Seed: the same gives the same text")
      ->check(CLI::Range(int64_t{0}, std::numeric_limits<int64_t>::max()))
      ->capture_default_str();
  command->add_option("--device", options->device, "One device (default: the first)");
  add_kernels(*command, *options);
  add_common(*command, *options);
  command->callback([options, &run] { run = [options] { return run_generate(*options); }; });
}

}  // namespace netcl::app
