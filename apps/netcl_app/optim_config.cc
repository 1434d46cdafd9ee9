#include "apps/netcl_app/optim_config.h"

#include <algorithm>

namespace netcl::app {
namespace {

using OptType = Optimizer::Type;
using SchedType = Schedule::Type;

constexpr double kMaxRate = 1e6;  // far above any rate that trains
constexpr int64_t kMaxCount = int64_t{1} << 31;
constexpr int64_t kStepSize = 1000;

// A factor of an average of the past: at 1 no gradient would ever enter it.
double as_beta(const ConfigView& view) {
  const double value = view.as_number();
  if (!(value >= 0.0 && value < 1.0)) {
    view.reject("expected a number of at least 0 and below 1, found " + describe_json(view.json()));
  }
  return value;
}

double as_positive(const ConfigView& view, double high) {
  const double value = view.as_number();
  if (!(value > 0.0 && value <= high)) {
    view.reject(str_cat("expected a number above 0 and at most ", high, ", found ",
                        describe_json(view.json())));
  }
  return value;
}

double positive_or(const ConfigView& view, const std::string& key, double otherwise, double high) {
  return view.has(key) ? as_positive(view.at(key), high) : otherwise;
}

double beta_or(const ConfigView& view, const std::string& key, double otherwise) {
  return view.has(key) ? as_beta(view.at(key)) : otherwise;
}

bool has_betas(OptType type) {
  return type == OptType::kAdam || type == OptType::kAdamW || type == OptType::kLion ||
         type == OptType::kLamb;
}
bool is_adam(OptType type) { return type == OptType::kAdam || type == OptType::kAdamW; }

std::vector<std::string> keys_of(OptType type) {
  std::vector<std::string> keys = {
      "type",      "lr",         "weight_decay", "groups",
      "clip_norm", "clip_value", "grad_norm",    "no_decay_on_bias_and_norms"};
  const auto add = [&keys](std::initializer_list<const char*> more) {
    keys.insert(keys.end(), more.begin(), more.end());
  };
  if (type == OptType::kSgd) add({"momentum", "dampening", "nesterov"});
  if (has_betas(type)) add({"beta1", "beta2", "betas"});
  if (type != OptType::kSgd && type != OptType::kLion) add({"eps"});
  if (is_adam(type)) add({"amsgrad"});
  if (type == OptType::kRmsprop) add({"alpha", "momentum", "centered"});
  if (type == OptType::kAdagrad) add({"lr_decay", "initial_accumulator_value"});
  return keys;
}

void parse_betas(const ConfigView& view, Optimizer& out) {
  if (const auto betas = view.find("betas")) {
    if (view.has("beta1") || view.has("beta2")) {
      betas->reject_key("give either betas or beta1 and beta2, not both");
    }
    if (betas->size() != 2) {
      betas->reject(str_cat("expected two numbers, [beta1, beta2], found ", betas->size()));
    }
    out.beta1 = as_beta((*betas)[0]);
    out.beta2 = as_beta((*betas)[1]);
    return;
  }
  out.beta1 = beta_or(view, "beta1", out.beta1);
  out.beta2 = beta_or(view, "beta2", out.beta2);
}

ParameterGroup parse_group(const ConfigView& view) {
  view.as_object().check_keys({"match", "weight_decay", "lr_scale", "frozen"});
  ParameterGroup out;
  out.match = view.text("match");
  if (out.match.empty()) {
    view.at("match").reject(
        "expected a pattern of parameter names, such as \"*.bias\", found \"\"");
  }
  if (view.has("weight_decay")) out.weight_decay = view.number("weight_decay", 0, kMaxRate);
  out.lr_scale = view.number_or("lr_scale", 1, 0, kMaxRate);
  out.frozen = view.boolean_or("frozen", false);
  if (out.frozen && (view.has("weight_decay") || view.has("lr_scale"))) {
    view.at("frozen").reject("a frozen group has neither weight_decay nor lr_scale");
  }
  return out;
}

void parse_any(const ConfigView& view, Optimizer& out) {
  if (const auto groups = view.find("groups")) {
    groups->as_list();
    for (size_t i = 0; i < groups->size(); ++i) out.groups.push_back(parse_group((*groups)[i]));
  }
  out.no_decay_on_bias_and_norms = view.boolean_or("no_decay_on_bias_and_norms", false);
  out.clip_norm = positive_or(view, "clip_norm", 0, kMaxRate);
  out.clip_value = positive_or(view, "clip_value", 0, kMaxRate);
  out.grad_norm = view.boolean_or("grad_norm", false);
}

bool has_floor(SchedType type) {
  return type == SchedType::kPolynomial || type == SchedType::kCosine ||
         type == SchedType::kLinear || type == SchedType::kPlateau;
}
bool has_total(SchedType type) {
  return (has_floor(type) && type != SchedType::kPlateau) || type == SchedType::kOneCycle;
}
bool has_gamma(SchedType type) {
  return type == SchedType::kStep || type == SchedType::kMultistep ||
         type == SchedType::kExponential;
}

std::vector<std::string> keys_of(SchedType type) {
  std::vector<std::string> keys = {"type", "scale_lr_by_devices"};
  const auto add = [&keys](std::initializer_list<const char*> more) {
    keys.insert(keys.end(), more.begin(), more.end());
  };
  if (type != SchedType::kPlateau) add({"unit"});
  if (type != SchedType::kOneCycle) add({"warmup_steps", "warmup_epochs"});
  if (has_floor(type)) add({"min_lr"});
  if (has_total(type)) add({"total"});
  if (has_gamma(type)) add({"gamma"});
  if (type == SchedType::kStep) add({"step_size"});
  if (type == SchedType::kMultistep) add({"milestones"});
  if (type == SchedType::kPolynomial) add({"power"});
  if (type == SchedType::kOneCycle) add({"pct_start", "div_factor", "final_div_factor", "anneal"});
  if (type == SchedType::kPlateau) {
    add({"watch", "factor", "patience", "cooldown", "threshold", "threshold_mode"});
  }
  return keys;
}

void parse_milestones(const ConfigView& view, Schedule& out) {
  const ConfigView list = view.list("milestones");
  if (list.size() == 0) list.reject("expected at least one milestone, found none");
  for (size_t i = 0; i < list.size(); ++i) {
    const int64_t value = list[i].as_integer(1, kMaxCount);
    if (i > 0 && value <= out.milestones.back()) {
      list[i].reject(
          str_cat("milestones must ascend: found ", value, " after ", out.milestones.back()));
    }
    out.milestones.push_back(value);
  }
}

void parse_plateau(const ConfigView& view, Schedule& out) {
  out.watch_train = view.text_or("watch", "test", {"test", "train"}) == "train";
  out.factor = positive_or(view, "factor", out.factor, 1.0);
  if (out.factor >= 1) view.at("factor").reject("a factor of 1 would never lower the rate");
  out.patience = view.integer_or("patience", out.patience, 0, kMaxCount);
  out.cooldown = view.integer_or("cooldown", out.cooldown, 0, kMaxCount);
  out.threshold = view.number_or("threshold", out.threshold, 0, kMaxRate);
  out.absolute_threshold = view.text_or("threshold_mode", "rel", {"rel", "abs"}) == "abs";
}

}  // namespace

Optimizer parse_optimizer(const ConfigView& view) {
  const OptType type = optimizer_type(view.text_or("type", "sgd", optimizer_names()));
  view.check_keys(keys_of(type));
  Optimizer out = Optimizer::of(type);
  out.lr = positive_or(view, "lr", out.lr, kMaxRate);
  out.weight_decay = view.number_or("weight_decay", out.weight_decay, 0.0, kMaxRate);
  out.momentum = beta_or(view, "momentum", 0.0);
  out.dampening = view.number_or("dampening", 0.0, 0.0, 1.0);
  out.nesterov = view.boolean_or("nesterov", false);
  if (out.nesterov && (out.momentum == 0.0 || out.dampening != 0.0)) {
    view.at("nesterov").reject("needs a momentum above 0 and dampening 0");
  }
  if (has_betas(type)) parse_betas(view, out);
  out.epsilon = positive_or(view, "eps", out.epsilon, 1.0);
  out.amsgrad = view.boolean_or("amsgrad", false);
  out.alpha = beta_or(view, "alpha", out.alpha);
  out.centered = view.boolean_or("centered", false);
  out.lr_decay = view.number_or("lr_decay", 0, 0, kMaxRate);
  out.initial_accumulator = view.number_or("initial_accumulator_value", 0, 0, kMaxRate);
  parse_any(view, out);
  return out;
}

void parse_ema(const ConfigView& view, Optimizer& optimizer) {
  view.check_keys({"decay", "evaluate"});
  optimizer.ema_decay = as_beta(view.at("decay"));
  if (optimizer.ema_decay == 0) {
    view.at("decay").reject(
        "an average with decay 0 is the parameters themselves; expected a "
        "number above 0 and below 1, such as 0.999");
  }
  optimizer.ema_evaluate = view.boolean_or("evaluate", true);
}

ScheduleConfig parse_schedule(const ConfigView& view, double lr) {
  ScheduleConfig config;
  Schedule& out = config.schedule;
  out.type = schedule_type(view.text_or("type", "constant", schedule_names()));
  view.check_keys(keys_of(out.type));
  out.by_epoch = view.text_or("unit", "step", {"step", "epoch"}) == "epoch";
  out.warmup_steps = view.integer_or("warmup_steps", 0, 0, kMaxCount);
  out.warmup_epochs = view.integer_or("warmup_epochs", 0, 0, kMaxCount);
  if (out.warmup_steps > 0 && out.warmup_epochs > 0) {
    view.at("warmup_epochs").reject_key("give either warmup_steps or warmup_epochs, not both");
  }
  config.min_lr = view.number_or("min_lr", 0.0, 0.0, kMaxRate);
  if (config.min_lr > lr) {
    view.at("min_lr").reject(
        str_cat("expected at most the learning rate ", lr, ", found ", config.min_lr));
  }
  out.min_factor = lr > 0 ? config.min_lr / lr : 0;
  out.total = view.integer_or("total", 0, 1, kMaxCount);
  out.step_size = view.integer_or("step_size", kStepSize, 1, kMaxCount);
  out.gamma = positive_or(view, "gamma", out.gamma, 1.0);
  out.power = positive_or(view, "power", out.power, 100.0);
  if (out.type == SchedType::kMultistep) parse_milestones(view, out);
  out.pct_start = view.number_or("pct_start", out.pct_start, 0, 1);
  out.div_factor = view.number_or("div_factor", out.div_factor, 1, 1e12);
  out.final_div_factor = view.number_or("final_div_factor", out.final_div_factor, 1, 1e12);
  out.linear_anneal = view.text_or("anneal", "cos", {"cos", "linear"}) == "linear";
  if (out.type == SchedType::kPlateau) parse_plateau(view, out);
  config.scale_lr_by_devices = view.boolean_or("scale_lr_by_devices", false);
  return config;
}

Json resolved_optimizer(const Optimizer& o) {
  Json out = {{"type", optimizer_name(o.type)}, {"lr", o.lr}, {"weight_decay", o.weight_decay}};
  const auto known = keys_of(o.type);
  const auto set = [&](const char* key, const Json& value) {
    if (std::find(known.begin(), known.end(), key) != known.end()) out[key] = value;
  };
  set("betas", {o.beta1, o.beta2});
  set("eps", o.epsilon);
  set("momentum", o.momentum);
  set("dampening", o.dampening);
  set("nesterov", o.nesterov);
  set("amsgrad", o.amsgrad);
  set("alpha", o.alpha);
  set("centered", o.centered);
  set("lr_decay", o.lr_decay);
  set("initial_accumulator_value", o.initial_accumulator);
  for (const ParameterGroup& group : o.groups) {
    Json g = {{"match", group.match}};
    if (group.weight_decay) g["weight_decay"] = *group.weight_decay;
    if (group.frozen) {
      g["frozen"] = true;
    } else {
      g["lr_scale"] = group.lr_scale;
    }
    out["groups"].push_back(g);
  }
  if (o.no_decay_on_bias_and_norms) out["no_decay_on_bias_and_norms"] = true;
  if (o.clip_norm > 0) out["clip_norm"] = o.clip_norm;
  if (o.clip_value > 0) out["clip_value"] = o.clip_value;
  if (o.grad_norm) out["grad_norm"] = true;
  return out;
}

Json resolved_schedule(const ScheduleConfig& config) {
  const Schedule& s = config.schedule;
  Json out = {{"type", schedule_name(s.type)}};
  const auto known = keys_of(s.type);
  const auto set = [&](const char* key, const Json& value) {
    if (std::find(known.begin(), known.end(), key) != known.end()) out[key] = value;
  };
  set("unit", s.by_epoch ? "epoch" : "step");
  set(s.warmup_epochs > 0 ? "warmup_epochs" : "warmup_steps",
      s.warmup_epochs > 0 ? s.warmup_epochs : s.warmup_steps);
  set("min_lr", config.min_lr);
  if (s.total > 0) set("total", s.total);
  set("step_size", s.step_size);
  set("milestones", s.milestones);
  set("gamma", s.gamma);
  set("power", s.power);
  set("pct_start", s.pct_start);
  set("div_factor", s.div_factor);
  set("final_div_factor", s.final_div_factor);
  set("anneal", s.linear_anneal ? "linear" : "cos");
  set("watch", s.watch_train ? "train" : "test");
  set("factor", s.factor);
  set("patience", s.patience);
  set("cooldown", s.cooldown);
  set("threshold", s.threshold);
  set("threshold_mode", s.absolute_threshold ? "abs" : "rel");
  if (config.scale_lr_by_devices) out["scale_lr_by_devices"] = true;
  return out;
}

}  // namespace netcl::app
