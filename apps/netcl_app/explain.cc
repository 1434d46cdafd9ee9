#include "apps/netcl_app/explain.h"

#include <iomanip>
#include <sstream>

#include "core/base/text.h"

namespace netcl::app {

namespace {

Json nodes_json(const CompiledGraph& graph, int64_t rows) {
  Json out = Json::array();
  for (const PlannedNode& node : graph.plan(rows)) {
    out.push_back({{"node", node.text},
                   {"kernel", node.kernel},
                   {"launches", node.launches},
                   {"bytes", node.bytes},
                   {"entries", node.entries}});
  }
  return out;
}

std::string megabytes(const Json& bytes) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(2) << bytes.get<double>() / 1e6 << " MB";
  return out.str();
}

void add_nodes(const Json& nodes, std::ostringstream& out) {
  for (const Json& node : nodes) {
    const std::string kernel = node.at("kernel").get<std::string>();
    out << std::setw(4) << node.at("launches").get<int64_t>() << std::setw(12)
        << megabytes(node.at("bytes")) << "  " << std::left << std::setw(18)
        << (kernel.empty() ? "all replicas" : kernel) << std::right << " "
        << node.at("node").get<std::string>() << "\n";
  }
}

}  // namespace

Json plan_json(const Replica& replica, int64_t rows) {
  const CompiledGraph &train = replica.train_graph(), &update = replica.compiled_update();
  Json out = {{"rows", rows}, {"passes", Json::array()}};
  for (const PassEffect& effect : replica.graphs().passes) {
    out["passes"].push_back({{"name", effect.name},
                             {"left_out", effect.left_out},
                             {"nodes_before", effect.nodes_before},
                             {"nodes_after", effect.nodes_after}});
  }
  out["nodes"] = nodes_json(train, rows);
  out["update"] = nodes_json(update, 0);
  out["launches"] = replica.launches_per_step(rows);
  out["workspace_bytes"] = train.workspace_bytes();
  out["temporaries_bytes"] = train.temporaries_bytes();
  return out;
}

Json explain_document(const Json& plans) { return {{"plans", plans}}; }

std::string explain_text(const Json& plans) {
  std::ostringstream out;
  for (const Json& plan : plans) {
    out << plan.at("device").get<std::string>() << ": a pass of " << plan.at("rows").get<int64_t>()
        << " samples\n launches   bytes  kernel             node\n";
    add_nodes(plan.at("nodes"), out);
    out << "update\n";
    add_nodes(plan.at("update"), out);
    out << "passes\n";
    for (const Json& pass : plan.at("passes")) {
      out << "  " << std::left << std::setw(26) << pass.at("name").get<std::string>() << std::right;
      if (pass.at("left_out").get<bool>()) {
        out << "left out\n";
      } else {
        out << pass.at("nodes_before").get<int64_t>() << " nodes -> "
            << pass.at("nodes_after").get<int64_t>() << "\n";
      }
    }
    out << plan.at("nodes").size() + plan.at("update").size() << " nodes, "
        << plan.at("launches").get<int64_t>() << " launches; temporaries "
        << megabytes(plan.at("workspace_bytes")) << ", without sharing "
        << megabytes(plan.at("temporaries_bytes")) << "\n";
  }
  return out.str();
}

}  // namespace netcl::app
