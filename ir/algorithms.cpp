#include "ir/algorithms.h"

// g++ 12 warns of the empty optional inside Boost's edge iterator.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#include <algorithm>
#include <boost/graph/biconnected_components.hpp>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>
#include <boost/graph/topological_sort.hpp>
#include <functional>
#include <queue>

#include "ir/check.h"
#include "ir/graph_impl.h"

namespace tfc::ir {

bool operands_come_first(const Graph& graph) {
  for (const NodeId id : graph.nodes())
    for (const Value operand : graph.operands(id))
      if (operand.valid() && id < operand.node) return false;
  return true;
}

std::vector<NodeId> topological_order(const Graph& graph) {
  if (operands_come_first(graph)) return graph.nodes();
  const BoostGraph& g = GraphAccess::boost(graph);
  std::vector<size_t> waiting(graph.node_capacity());  // operands that are not in the order yet
  using Ready = std::pair<bool, uint32_t>;             // late, id
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  const auto make_ready = [&](uint32_t id) { ready.emplace(graph.node({id}).late, id); };
  for (const NodeId id : graph.nodes()) {
    for (const Value operand : graph.operands(id)) waiting[id.index] += operand.valid();
    if (waiting[id.index] == 0) make_ready(id.index);
  }
  std::vector<NodeId> order;
  order.reserve(graph.node_count());
  while (!ready.empty()) {
    const uint32_t next = ready.top().second;
    ready.pop();
    order.push_back({next});
    const auto [begin, end] = boost::out_edges(next, g);
    for (auto edge = begin; edge != end; ++edge) {
      const uint32_t user = static_cast<uint32_t>(boost::target(*edge, g));
      if (--waiting[user] == 0) make_ready(user);
    }
  }
  TFC_CHECK(order.size() == graph.node_count(), "the graph has a cycle");
  return order;
}

bool has_cycle(const Graph& graph) {
  std::vector<size_t> order;
  order.reserve(graph.node_capacity());
  try {
    boost::topological_sort(GraphAccess::boost(graph), std::back_inserter(order));
  } catch (const boost::not_a_dag&) {
    return true;
  }
  return false;
}

namespace {

/// Marks what is reached from `from` by `neighbours(vertex, visit)`.
template <typename Neighbours>
std::vector<bool> reached(const Graph& graph, const std::vector<NodeId>& from, Neighbours neighbours) {
  std::vector<bool> seen(graph.node_capacity());
  std::vector<size_t> stack;
  const auto visit = [&](size_t vertex) {
    if (seen[vertex]) return;
    seen[vertex] = true;
    stack.push_back(vertex);
  };
  for (const NodeId id : from) visit(id.index);
  while (!stack.empty()) {
    const size_t vertex = stack.back();
    stack.pop_back();
    neighbours(vertex, visit);
  }
  return seen;
}

}  // namespace

std::vector<bool> ancestors(const Graph& graph, const std::vector<NodeId>& from) {
  return reached(graph, from, [&](size_t vertex, const auto& visit) {
    for (const Value operand : graph.operands({static_cast<uint32_t>(vertex)}))
      if (operand.valid()) visit(operand.node.index);
  });
}

std::vector<bool> descendants(const Graph& graph, const std::vector<NodeId>& from) {
  const BoostGraph& g = GraphAccess::boost(graph);
  return reached(graph, from, [&](size_t vertex, const auto& visit) {
    const auto [begin, end] = boost::out_edges(vertex, g);
    for (auto edge = begin; edge != end; ++edge) visit(boost::target(*edge, g));
  });
}

// ---- minimum cut of nodes ----

namespace {

using FlowTraits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
struct FlowVertex {
  boost::default_color_type colour = boost::white_color;
  int64_t distance = 0;
  FlowTraits::edge_descriptor predecessor;
};
struct FlowEdge {
  int64_t capacity = 0;
  int64_t residual = 0;
  FlowTraits::edge_descriptor reverse;
};
using FlowGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, FlowVertex, FlowEdge>;

// Beyond any sum of costs, and small enough that sums of a few do not overflow.
constexpr int64_t kUncuttable = std::numeric_limits<int64_t>::max() / 8;

void add_pipe(FlowGraph& flow, size_t from, size_t to, int64_t capacity) {
  const auto forth = boost::add_edge(from, to, FlowEdge{capacity, 0, {}}, flow).first;
  const auto back = boost::add_edge(to, from, FlowEdge{0, 0, {}}, flow).first;
  flow[forth].reverse = back;
  flow[back].reverse = forth;
}

}  // namespace

// A node v becomes an edge 2v -> 2v+1 that carries its cost; the graph's own edges cannot be cut. The cut is
// where the source's side of the residual network ends inside a node.
std::vector<NodeId> min_cut(const Graph& graph, const std::vector<NodeId>& sources,
                            const std::vector<NodeId>& sinks, const std::function<int64_t(NodeId)>& cost) {
  const size_t source = 2 * graph.node_capacity(), sink = source + 1;
  FlowGraph flow(sink + 1);
  for (const NodeId id : graph.nodes()) {
    const int64_t price = cost(id);
    add_pipe(flow, 2 * id.index, 2 * id.index + 1, price < 0 ? kUncuttable : price);
    for (const NodeId user : graph.users(id)) add_pipe(flow, 2 * id.index + 1, 2 * user.index, kUncuttable);
  }
  for (const NodeId id : sources) add_pipe(flow, source, 2 * id.index, kUncuttable);
  for (const NodeId id : sinks) add_pipe(flow, 2 * id.index + 1, sink, kUncuttable);

  const int64_t total = boost::boykov_kolmogorov_max_flow(
      flow, boost::get(&FlowEdge::capacity, flow), boost::get(&FlowEdge::residual, flow),
      boost::get(&FlowEdge::reverse, flow), boost::get(&FlowVertex::predecessor, flow),
      boost::get(&FlowVertex::colour, flow), boost::get(&FlowVertex::distance, flow),
      boost::get(boost::vertex_index, flow), source, sink);
  TFC_CHECK(total < kUncuttable,
            "sources and sinks cannot be separated: a path between them has no node that may be cut");

  std::vector<bool> seen(sink + 1);
  std::vector<size_t> stack = {source};
  seen[source] = true;
  while (!stack.empty()) {
    const size_t vertex = stack.back();
    stack.pop_back();
    const auto [begin, end] = boost::out_edges(vertex, flow);
    for (auto edge = begin; edge != end; ++edge) {
      const size_t next = boost::target(*edge, flow);
      if (seen[next] || flow[*edge].residual == 0) continue;
      seen[next] = true;
      stack.push_back(next);
    }
  }
  std::vector<NodeId> cut;
  for (const NodeId id : graph.nodes())
    if (seen[2 * id.index] && !seen[2 * id.index + 1]) cut.push_back(id);
  return cut;
}

std::vector<NodeId> articulation_points(const Graph& graph) {
  using Undirected = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS>;
  Undirected undirected(graph.node_capacity());
  for (const NodeId id : graph.nodes())
    for (const NodeId user : graph.users(id)) boost::add_edge(id.index, user.index, undirected);
  std::vector<size_t> points;
  boost::articulation_points(undirected, std::back_inserter(points));
  std::sort(points.begin(), points.end());
  std::vector<NodeId> list;
  for (const size_t point : points) list.push_back({static_cast<uint32_t>(point)});
  return list;
}

std::vector<NodeId> critical_path(const Graph& graph, const std::function<double(NodeId)>& cost) {
  std::vector<double> dearest(graph.node_capacity());  // of the paths that end here
  std::vector<NodeId> before(graph.node_capacity());
  NodeId last;
  for (const NodeId id : topological_order(graph)) {
    for (const Value operand : graph.operands(id)) {
      if (!operand.valid()) continue;
      const NodeId producer = operand.node;
      if (before[id.index].valid() && dearest[producer.index] <= dearest[before[id.index].index]) continue;
      before[id.index] = producer;
    }
    dearest[id.index] = cost(id) + (before[id.index].valid() ? dearest[before[id.index].index] : 0.0);
    if (!last.valid() || dearest[id.index] > dearest[last.index]) last = id;
  }
  std::vector<NodeId> path;
  for (NodeId id = last; id.valid(); id = before[id.index]) path.push_back(id);
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace tfc::ir
