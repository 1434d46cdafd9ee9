// netcl-app bench op: one op on one device: its time, and its error against the op's reference in
// double precision.
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <optional>

#include "apps/netcl_app/bench_commands.h"
#include "apps/netcl_app/op_arguments.h"
#include "apps/netcl_app/tune/timed_kernels.h"
#include "core/autograd/eager.h"
#include "core/autograd/op_cache.h"
#include "core/base/json_doc.h"
#include "core/base/statistics.h"
#include "core/base/text.h"
#include "core/ops/case_inputs.h"
#include "core/runtime/tuned_record.h"
#include "core/verify/host_bytes.h"
#include "core/verify/sample_cases.h"

namespace netcl::app {

namespace {

constexpr uint32_t kSeed = 20240229;

struct BenchOpOptions : OpOptions {
  int repeats = 9;
  int calls = 1;
  bool unchecked = false;
  double max_rel_err = 1e-4;
};

// The options that ask for a case of the op's tests.
std::string as_options(const OpRow& row, const OpCase& c) {
  std::string out = "--op " + row.name;
  for (const TensorDesc& desc : c.in) {
    std::vector<std::string> dims;
    for (const int64_t dim : desc.shape.dims()) dims.push_back(std::to_string(dim));
    out += " --shape " + join(dims, ",");
  }
  const Json attrs = Json::parse(tuned_question(row.name, c.in, c.attrs).attributes);
  for (const auto& item : attrs.items())
    out += " --attr '" + item.key() + "=" +
           (item.value().is_string() ? item.value().get<std::string>() : item.value().dump()) + "'";
  return out;
}

const OpCase& largest_case(const OpRow& row) {
  return *std::max_element(row.cases.begin(), row.cases.end(),
                           [](const OpCase& a, const OpCase& b) {
                             return a.in[0].shape.num_elements() < b.in[0].shape.num_elements();
                           });
}

bool needs_tables(const OpRow& row) {
  return std::all_of(row.cases.begin(), row.cases.end(),
                     [](const OpCase& c) { return !c.fixed.empty(); });
}

std::string why_tables(const OpRow& row) {
  return "Inputs of " + row.name +
         " are places or tables that the others are read by, so random values will not do. It runs "
         "with the shapes of its tests, such as " +
         as_options(row, largest_case(row)) + "; bench step times it as a part of a step";
}

// The case of the op's tests that is this question: its inputs hold what the op needs, such as the
// table of an optimiser step's blocks.
std::optional<OpCase> test_case(const OpArguments& op) {
  const std::string wanted = tuned_question(op.op.name, op.in, op.attrs).text();
  for (const OpCase& c : op.op.cases) {
    if (tuned_question(op.op.name, c.in, complete_attrs(op.op, c.attrs)).text() == wanted) return c;
  }
  return std::nullopt;
}

std::vector<HostTensor> inputs_for(const OpArguments& op) {
  if (op.fused) return case_inputs(with_inputs(*op.fused, kSeed), kSeed);
  NETCL_CHECK(op.op.reference && !op.op.view && !op.op.collective, ErrorCode::kUsage,
              "bench op: ", op.op.name, " has no kernels of its own; choose another op");
  std::optional<OpCase> sample = sample_case(op.op, op.in, op.attrs);
  if (!sample) sample = test_case(op);
  NETCL_CHECK(sample, ErrorCode::kUsage, "bench op: ", why_tables(op.op));
  return case_inputs(*sample, kSeed);
}

OpArguments arguments_of(const BenchOpOptions& options, OpDevice& place) {
  try {
    return op_arguments(options, place);
  } catch (const Error& e) {
    if (!options.layer.empty()) throw;
    const OpRow& row = find_op(options.op);
    if (row.cases.empty() || !needs_tables(row)) throw;
    fail(e.code(), e.message(), ". ", why_tables(row));
  }
}

std::vector<double> read(const Tensor& tensor, const TensorDesc& desc) {
  std::vector<uint8_t> bytes(desc.size_bytes());
  tensor.copy_to_host(bytes.data());
  return from_bytes(desc, bytes).data;
}

// A right result that is stored in 16 bits is rounded to them.
double rounding(const std::vector<TensorDesc>& out) {
  double most = 0;
  for (const TensorDesc& d : out)
    most = std::max(most, d.dtype == DType::kF16 ? 1e-3 : d.dtype == DType::kBF16 ? 8e-3 : 0);
  return most;
}

// The greatest difference, of the largest element. Infinite where one side alone is no number.
double relative_error(const std::vector<double>& got, const std::vector<double>& wanted) {
  double largest = 0, error = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (std::isnan(wanted[i]) && std::isnan(got[i])) continue;
    if (got[i] == wanted[i]) {
      if (std::isfinite(wanted[i])) largest = std::max(largest, std::abs(wanted[i]));
      continue;
    }
    const double e = std::abs(got[i] - wanted[i]);
    error = std::isfinite(e) ? std::max(error, e) : INFINITY;
    if (std::isfinite(wanted[i])) largest = std::max(largest, std::abs(wanted[i]));
  }
  return error == 0 ? 0 : error / largest;
}

double error_of(const OpArguments& op, const std::vector<HostTensor>& in,
                const std::vector<Tensor>& results) {
  std::vector<const HostTensor*> inputs;
  for (const HostTensor& tensor : in) inputs.push_back(&tensor);
  std::vector<HostTensor> wanted;
  for (const TensorDesc& d : op.out)
    wanted.push_back({d, std::vector<double>(static_cast<size_t>(d.shape.num_elements()))});
  op.op.reference({op.op, op.in, op.attrs}, inputs, wanted);
  double out = 0;
  for (size_t i = 0; i < wanted.size(); ++i)
    out = std::max(out, relative_error(read(results[i], op.out[i]), wanted[i].data));
  return out;
}

// Multiplications and additions, of the op whose count everybody means.
Json gflops(const OpArguments& op, double seconds) {
  if (op.op.name != "matmul") return nullptr;
  Attrs facts = op.attrs;
  op.op.facts({op.op, op.in, op.attrs}, facts);
  double flops = 2;
  for (const char* name : {"batch", "M", "N", "K"})
    flops *= static_cast<double>(facts.integer(name));
  return flops / seconds * 1e-9;
}

Json measure(const BenchOpOptions& options) {
  OpDevice place(options);
  const OpArguments op = arguments_of(options, place);
  const std::vector<HostTensor> in = inputs_for(op);
  const std::shared_ptr<Queue> queue = Queue::create(place.device());
  Eager eager(place.kernels(), queue);
  std::vector<Tensor> inputs;
  Json shapes = Json::array();
  double bytes = 0;
  for (const HostTensor& tensor : in) {
    inputs.push_back(Tensor::from_host(queue, tensor.desc, to_bytes(tensor).data()));
    shapes.push_back(tensor.desc.shape.dims());
    bytes += static_cast<double>(tensor.desc.size_bytes());
  }
  for (const TensorDesc& d : op.out) bytes += static_cast<double>(d.size_bytes());

  const std::vector<Tensor> results = eager.run(op.op, inputs, op.out, op.attrs);
  const double error = options.unchecked ? 0 : error_of(op, in, results);
  const double allowed = std::max(options.max_rel_err, rounding(op.out));
  // Bound once to its buffers, as a training step runs it.
  TimedKernels timed(queue, in, op.out);
  OpCache chosen;
  const std::unique_ptr<Executable> kernel =
      timed.bind(chosen.get(place.kernels(), place.device(), op.op, inputs, op.out, op.attrs)
                     .executable.recipe());
  std::vector<double> microseconds;
  for (int i = 0; i < options.repeats; ++i)
    microseconds.push_back(timed.sample(*kernel, options.calls));
  const double seconds = median(std::move(microseconds)) * 1e-6;
  Json out = {{"op", op.op.name},
              {"shape", shapes},
              {"dtype", in.empty() ? "" : dtype_name(in[0].desc.dtype)},
              {"device", place.info().selector},
              {"kernel_set", nullptr},
              {"variant", nullptr},
              {"time_us", seconds * 1e6},
              {"gflops", gflops(op, seconds)},
              {"gbs", bytes / seconds * 1e-9},
              {"max_rel_err", options.unchecked ? Json(nullptr) : Json(error)},
              {"correct", options.unchecked ? Json(nullptr) : Json(error <= allowed)},
              {"allowed", allowed}};
  for (const KernelCandidate& c :
       place.kernels().why(place.device(), {op.op, op.in, op.out, op.attrs})) {
    if (c.verdict != "chosen") continue;
    out["kernel_set"] = c.plugin;
    out["variant"] = c.variant;
  }
  return out;
}

int run_bench_op(const BenchOpOptions& options) {
  const Json row = measure(options);
  if (options.json) {
    std::cout << Json({{"results", Json::array({row})}}).dump(2) << "\n";
  } else {
    std::cout << row["op"].get<std::string>() << " " << row["shape"].dump() << " on "
              << row["device"].get<std::string>() << ": " << row["kernel_set"].get<std::string>()
              << "/" << row["variant"].get<std::string>() << "  " << std::setprecision(3)
              << row["time_us"].get<double>() << " us  " << row["gbs"].get<double>() << " GB/s";
    if (!row["gflops"].is_null()) std::cout << "  " << row["gflops"].get<double>() << " GFLOP/s";
    if (!options.unchecked) std::cout << "  max_rel_err " << row["max_rel_err"].get<double>();
    std::cout << "\n";
  }
  if (options.unchecked || row["correct"].get<bool>()) return 0;
  std::cerr << "error: bench op: the result of " << row["op"].get<std::string>() << " by "
            << row["kernel_set"].get<std::string>() << "/" << row["variant"].get<std::string>()
            << " is wrong by " << row["max_rel_err"].get<double>()
            << " of its largest element; allowed is " << row["allowed"].get<double>() << "\n";
  return exit_code(ErrorCode::kPlugin);
}

}  // namespace

void add_bench_op(CLI::App& bench, Run& run) {
  auto options = std::make_shared<BenchOpOptions>();
  CLI::App* command =
      bench.add_subcommand("op", "One op beside its reference in double precision: time and error");
  command->footer("Example: netcl-app bench op --op matmul --shape 128,784,256 --device cpu:0");
  add_op_options(*command, *options);
  command->add_option("--repeats", options->repeats, "Runs of which the median counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command
      ->add_option("--calls", options->calls,
                   "Times that a run enqueues the op before it waits; its time is divided by them")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_flag("--unchecked", options->unchecked,
                    "Do not compute the reference, which takes long where the op does");
  command
      ->add_option("--max-rel-err", options->max_rel_err,
                   "Greatest error of a right result, relative to its largest element")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command->callback([options, &run] { run = [options] { return run_bench_op(*options); }; });
}

}  // namespace netcl::app
