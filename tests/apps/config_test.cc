// The training configuration: examples, defaults, paths, and a message for each mistake.
#include "apps/netcl_app/config.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "core/base/error.h"

namespace netcl::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModel =
    R"("model": {"input": [4], "layers": [{"type": "linear", "out": 2}]})";
constexpr const char* kData = R"("data": {"format": "csv", "train": "a.csv"})";

std::string plain() { return str_cat("{", kModel, ", ", kData, "}"); }
std::string with(const std::string& more) {
  return str_cat("{", kModel, ",\n", kData, ",\n", more, "}");
}
std::string with_data(const std::string& inside) {
  return str_cat("{", kModel, ",\n\"data\": {", inside, "}}");
}

TrainConfig parse(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const auto doc = JsonDoc::parse(text, "dir/c.json");
  for (const std::string& assignment : overrides) doc->apply_override(assignment);
  return parse_train_config(doc, "/base");
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage) << e.message();
    return e.message();
  }
  return "(no error)";
}

TEST(TrainConfig, Defaults) {
  const TrainConfig c = parse(plain());
  EXPECT_EQ(c.name, "c");
  EXPECT_EQ(c.input, (std::vector<int64_t>{4}));
  EXPECT_EQ(c.data.train, "/base/a.csv");
  EXPECT_EQ(c.data.label, -1);
  EXPECT_EQ(c.loss.spec.type, "cross_entropy");
  EXPECT_EQ(c.metrics, (std::vector<std::string>{"accuracy"}));
  EXPECT_EQ(c.optimizer.type, Optimizer::Type::kSgd);
  EXPECT_EQ(c.optimizer.lr, 0.01);
  EXPECT_EQ(c.schedule.schedule.type, Schedule::Type::kConstant);
  EXPECT_EQ(c.batch_size, 32);
  EXPECT_EQ(c.epochs, 1);
  EXPECT_EQ(c.seed, 0u);
  EXPECT_EQ(c.model.list("layers")[0].integer("out"), 2);
}

TEST(TrainConfig, ResolvedParsesToTheSame) {
  const std::vector<std::string> texts = {
      plain(),
      str_cat("{", kModel, R"(, "data": {"format": "tsv", "train": "/x/a.tsv", "label": "kind",
        "header": "yes", "scale": 0.1, "split": [0.7, 0.2], "dir": "d"}, "optimizer": {"type":
        "adamw", "betas": [0.8, 0.95]}, "schedule": {"type": "step", "gamma": 0.3}, "seed": 7})"),
      str_cat("{", kModel, R"(, "data": {"format": "idx", "dir": "m", "train": "x",
        "train_labels": "y", "test": "tx", "test_labels": "ty"}, "optimizer": {"type": "sgd",
        "momentum": 0.9, "nesterov": true}, "schedule": {"type": "linear", "min_lr": 1e-5,
        "warmup_steps": 3}})"),
      with(R"("optimizer": {"type": "rmsprop", "momentum": 0.5, "centered": true, "clip_norm": 1,
        "groups": [{"match": "*.bias", "weight_decay": 0, "lr_scale": 0.5}, {"match": "a*",
        "frozen": true}]}, "schedule": {"type": "plateau", "watch": "train", "warmup_epochs": 2},
        "ema": {"decay": 0.99, "evaluate": false}, "accumulate": 4,
        "init_from": {"file": "w.safetensors", "match": "*"})"),
      with(R"("optimizer": {"type": "lamb", "no_decay_on_bias_and_norms": true}, "schedule":
        {"type": "one_cycle", "unit": "epoch", "anneal": "linear", "scale_lr_by_devices": true},
        "init_from": "/x/w.safetensors")"),
      str_cat("{", kModel, R"(, "data": {"format": "text", "train": "t", "context": 16,
        "samples_per_epoch": 100, "split": [0.9, 0.1]}, "loss": {"type": "cross_entropy",
        "label_smoothing": 0.1, "ignore_index": 0, "class_weights": [1, 2.5]},
        "metrics": ["accuracy", {"type": "top_k", "k": 3}, "perplexity"]})"),
      str_cat("{", kModel, R"(, "data": {"format": "csv", "train": "t", "target": ["a", -2]},
        "loss": {"type": "huber", "delta": 2}})"),
      str_cat("{", kModel, R"(, "data": {"format": "npz", "train": "t.npz", "test_features": "u",
        "test_labels": "v", "tokens": true}, "loss": {"type": "nll", "class_weights":
        "balanced"}})"),
      str_cat("{", kModel, R"(, "data": {"format": "cifar", "train": ["a", "b"], "test": "c"}})"),
      str_cat("{", kModel, R"(, "data": {"format": "synthetic", "samples": 50, "kind": "noise",
        "split": [0.5, 0.5]}, "loss": {"type": "smooth_l1", "beta": 0.5}})")};
  for (const std::string& text : texts) {
    const Json first = parse(text).resolved();
    EXPECT_EQ(parse(first.dump()).resolved().dump(), first.dump());
  }
}

TEST(TrainConfig, PathsFollowDirAndOverrides) {
  const std::string text =
      with_data(R"("format": "idx", "dir": "m", "train": "x", "train_labels": "/abs/y")");
  const std::string here = fs::current_path().string();
  EXPECT_EQ(parse(text).data.train, "/base/m/x");
  EXPECT_EQ(parse(text).data.train_labels, "/abs/y");
  EXPECT_EQ(parse(text, {"data.dir=sub"}).data.train, here + "/sub/x");
  EXPECT_EQ(parse(text, {"data.dir=/mnist"}).data.train, "/mnist/x");
  EXPECT_EQ(parse(plain(), {"data.train=b.csv"}).data.train, here + "/b.csv");
}

TEST(TrainConfig, OverridesApply) {
  const TrainConfig c = parse(plain(), {"optimizer.type=adamw", "optimizer.lr=0.5", "epochs=3",
                                        "model.layers[0].out=9", "schedule.type=cosine"});
  EXPECT_EQ(c.optimizer.lr, 0.5);
  EXPECT_EQ(c.optimizer.weight_decay, 0.01);
  EXPECT_EQ(c.epochs, 3);
  EXPECT_EQ(c.schedule.schedule.type, Schedule::Type::kCosine);
  EXPECT_EQ(c.model.list("layers")[0].integer("out"), 9);
  EXPECT_EQ(message_of([&] { parse(plain(), {"epochs=many"}); }),
            "--set epochs=many: epochs: expected a whole number from 1 to 2147483648, found "
            "\"many\"");
  EXPECT_EQ(message_of([&] { parse(plain(), {"optimizer.momentun=0.9"}); }),
            "--set optimizer.momentun=0.9: optimizer.momentun: unknown key; did you mean "
            "\"momentum\"?");
}

TEST(TrainConfig, ExamplesAreSound) {
  const TrainConfig digits = load_train_config("apps/examples/digits_mlp.json");
  EXPECT_EQ(digits.name, "digits_mlp");
  EXPECT_EQ(digits.data.train, (fs::current_path() / "apps/examples/data/digits.csv.gz").string());
  EXPECT_EQ(digits.epochs, 20);
  const TrainConfig mnist = load_train_config("apps/examples/mnist_mlp.json", {"data.dir=/data"});
  EXPECT_EQ(mnist.data.train, "/data/train-images-idx3-ubyte.gz");
  EXPECT_EQ(mnist.input, (std::vector<int64_t>{784}));
}

TEST(TrainConfig, Mistakes) {
  const std::string csv = R"("format": "csv", "train": "a", )";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {str_cat("{", kData, "}"), "dir/c.json:1:1: the key \"model\" is missing"},
      {with(R"("batchsize": 3)"),
       "dir/c.json:3:1: batchsize: unknown key; did you mean \"batch_size\"?"},
      {with(R"("batch_size": 0)"),
       "dir/c.json:3:15: batch_size: expected a whole number from 1 to 2147483648, found 0"},
      {with(R"("loss": "msee")"),
       "dir/c.json:3:9: loss: expected one of \"cross_entropy\", \"bce_with_logits\", \"mse\", "
       "\"l1\", \"smooth_l1\", \"huber\", \"nll\", \"kl_div\", found \"msee\"; did you mean "
       "\"mse\"?"},
      {with(R"("loss": {"type": "mse", "delta": 1})"), "dir/c.json:3:25: loss.delta: unknown key"},
      {with(R"("loss": {"type": "cross_entropy", "label_smoothing": 2})"),
       "dir/c.json:3:54: loss.label_smoothing: expected a number from 0 to 1, found 2"},
      {with(R"("loss": {"type": "cross_entropy", "class_weights": "balance"})"),
       "dir/c.json:3:52: loss.class_weights: expected one of \"balanced\", found \"balance\""},
      {with(R"("loss": {"type": "cross_entropy", "class_weights": [0, 0]})"),
       "dir/c.json:3:52: loss.class_weights: expected at least one weight above 0"},
      {with(R"("metrics": ["acuracy"])"),
       "dir/c.json:3:13: metrics[0]: expected one of \"accuracy\", \"top5\", \"confusion\", "
       "\"per_class\", \"precision\", \"recall\", \"f1\", \"macro_f1\", \"perplexity\", \"mse\", "
       "\"mae\", found \"acuracy\"; did you mean \"accuracy\"?"},
      {with(R"("metrics": [{"type": "top_k", "k": 0}])"),
       "dir/c.json:3:36: metrics[0].k: expected a whole number from 1 to 1000, found 0"},
      {with(R"("optimizer": {"type": "adem"})"),
       "dir/c.json:3:23: optimizer.type: expected one of \"sgd\", \"adam\", \"adamw\""},
      {with(R"("optimizer": {"groups": [{"match": ""}]})"),
       "dir/c.json:3:36: optimizer.groups[0].match: expected a pattern of parameter names"},
      {with(R"("optimizer": {"groups": [{"match": "a", "frozen": true, "lr_scale": 2}]})"),
       "dir/c.json:3:51: optimizer.groups[0].frozen: a frozen group has neither"},
      {with(R"("schedule": {"type": "multistep", "milestones": [5, 5]})"),
       "dir/c.json:3:53: schedule.milestones[1]: milestones must ascend: found 5 after 5"},
      {with(R"("schedule": {"type": "cosine", "min_lr": 1})"),
       "dir/c.json:3:42: schedule.min_lr: expected at most the learning rate 0.01, found 1"},
      {with(R"("accumulate": 33)"), "dir/c.json:3:15: accumulate: expected at most batch_size, 32"},
      {with(R"("ema": {"decay": 1})"), "dir/c.json:3:18: ema.decay: expected a number of at least"},
      {with(R"("optimizer": {"lr": -1})"),
       "dir/c.json:3:21: optimizer.lr: expected a number above 0 and"},
      {with(R"("optimizer": {"beta1": 0.9})"), "dir/c.json:3:15: optimizer.beta1: unknown key"},
      {with(R"("optimizer": {"nesterov": true})"),
       "dir/c.json:3:27: optimizer.nesterov: needs a momentum above 0 and dampening 0"},
      {with(R"("optimizer": {"type": "adamw", "betas": [0.9]})"),
       "dir/c.json:3:41: optimizer.betas: expected two numbers, [beta1, beta2], found 1"},
      {with(R"("optimizer": {"type": "adamw", "betas": [0.9, 1.0]})"),
       "dir/c.json:3:47: optimizer.betas[1]: expected a number of at least 0 and below 1"},
      {with(R"("schedule": {"min_lr": 0})"), "dir/c.json:3:14: schedule.min_lr: unknown key"},
      {with(R"("seed": -1)"), "dir/c.json:3:9: seed: expected a whole number from 0 to"},
      {with_data(R"("train": "a")"), "dir/c.json:2:9: data: the key \"format\" is missing"},
      {with_data(R"("format": "cvs", "train": "a")"),
       "dir/c.json:2:20: data.format: expected one of \"csv\", \"tsv\", \"idx\", \"npy\", \"npz\", "
       "\"cifar\", \"text\", \"synthetic\", found \"cvs\"; did you mean \"csv\"?"},
      {with_data(csv + R"("target": "y", "label": "z")"),
       "dir/c.json:2:41: data.target: give either data.target (numbers) or data.label"},
      {with_data(R"("format": "text", "train": "a", "label": 0)"),
       "dir/c.json:2:42: data.label: unknown key"},
      {with_data(R"("format": "text", "train": "a", "unit": "word")"),
       "dir/c.json:2:50: data.unit: expected one of \"character\", \"byte\", found \"word\""},
      {with_data(R"("format": "cifar", "train": "a", "classes": 11)"),
       "dir/c.json:2:54: data.classes: expected 10, 100, or 20"},
      {with_data(R"("format": "synthetic", "kind": "blob")"),
       "dir/c.json:2:41: data.kind: expected one of \"blobs\", \"noise\", found \"blob\""},
      {with_data(R"("format": "idx", "train": "a")"),
       "dir/c.json:2:9: data: the key \"train_labels\" is missing"},
      {with_data(R"("format": "idx", "train": "a", "train_labels": "b", "test": "c")"),
       "dir/c.json:2:9: data: \"test\" and \"test_labels\" belong together"},
      {with_data(csv + R"("label": 1.5)"),
       "dir/c.json:2:50: data.label: expected a column's number"},
      {with_data(csv + R"("scale": 0)"), "dir/c.json:2:50: data.scale: 0 would turn"},
      {with_data(csv + R"("split": [0.8])"),
       "dir/c.json:2:50: data.split: expected two parts, [train, test], found 1"},
      {with_data(csv + R"("split": [0.8, 0.3])"),
       "dir/c.json:2:50: data.split: the parts add up to 1.1; expected at most 1"},
      {with_data(csv + R"("split": [0, 1])"),
       "dir/c.json:2:51: data.split[0]: the training part is 0"},
      {with_data(csv + R"("test": "b", "split": [0.5, 0.5])"),
       "dir/c.json:2:54: data.split: give either a test file"},
      {with_data(csv + R"("delimiter": ",,")"),
       "dir/c.json:2:54: data.delimiter: expected one character"},
      {with_data(csv + R"("header": true)"),
       "dir/c.json:2:51: data.header: expected one of \"auto\", \"yes\", \"no\", found true"},
      {str_cat(R"({"model": {"input": [], "layers": []}, )", kData, "}"),
       "dir/c.json:1:21: model.input: expected the shape of one sample, such as [64], found []"},
      {str_cat(R"({"model": {"input": [4], "layers": []}, )", kData, "}"),
       "dir/c.json:1:36: model.layers: expected at least one layer, found none"},
      {str_cat(R"({"model": {"input": [4], "layers": [{"out": 1}]}, )", kData, "}"),
       "dir/c.json:1:37: model.layers[0]: the key \"type\" is missing"},
      {str_cat(R"({"model": {"input": [0], "layers": [{"out": 1}]}, )", kData, "}"),
       "dir/c.json:1:22: model.input[0]: expected a whole number from 1"},
  };
  for (const auto& [text, expected] : cases) {
    const std::string message = message_of([&, t = text] { parse(t); });
    EXPECT_EQ(message.substr(0, expected.size()), expected) << text;
  }
}

}  // namespace
}  // namespace netcl::app
