// Graphviz text of an entry, through Boost's writer.
// g++ 12 warns of the empty optional inside Boost's edge iterator.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/filtered_graph.hpp>
#include <boost/graph/graphviz.hpp>
#include <cstdio>
#include <sstream>

#include "ir/cost.h"
#include "ir/module.h"

namespace tfc::ir {
namespace {

/// 1536 -> "1.54 k"
std::string short_number(double value) {
  constexpr const char* kUnits[] = {"", " k", " M", " G", " T", " P"};
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.3g%s", value, kUnits[unit]);
  return text;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

/// What is drawn: an edge for each operand, with the number of the result that it is.
using Drawing =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, boost::no_property, uint32_t>;

Drawing drawing_of(const Graph& graph) {
  Drawing drawing(graph.node_capacity());
  for (const NodeId id : graph.nodes()) {
    std::vector<Value> operands = graph.operands(id);
    std::stable_sort(operands.begin(), operands.end(),
                     [](Value a, Value b) { return a.valid() && (!b.valid() || a.node < b.node); });
    for (const Value operand : operands)
      if (operand.valid()) boost::add_edge(operand.node.index, id.index, operand.result, drawing);
  }
  return drawing;
}

struct Living {
  const Graph* graph = nullptr;
  bool operator()(size_t vertex) const { return graph->alive({static_cast<uint32_t>(vertex)}); }
};

/// Name, operation and types, then what it costs at the point.
std::string label(const Graph& graph, NodeId id, const Point& point) {
  const Node& node = graph.node(id);
  std::string text = escaped(node.name) + "\\n" + std::string(info(node.op).text);
  for (const Type& type : node.results) text += "\\n" + type.text();
  const Cost cost = node_cost(graph, id);
  if (!cost.bytes.is_zero())
    text += "\\n" + short_number(static_cast<double>(cost.flops.at(point))) + "FLOP  " +
            short_number(static_cast<double>(cost.bytes.at(point))) + "B";
  return text;
}

}  // namespace

std::string dot(const Module& module, const Entry& entry, const Point& point) {
  const Drawing g = drawing_of(entry.graph);
  const boost::filtered_graph<Drawing, boost::keep_all, Living> living(g, boost::keep_all(),
                                                                       Living{&entry.graph});
  const auto write_vertex = [&](std::ostream& out, size_t vertex) {
    const NodeId id{static_cast<uint32_t>(vertex)};
    const bool leaf = info(entry.graph.node(id).op).op_class == OpClass::Leaf;
    out << "[label=\"" << label(entry.graph, id, point) << '"' << (leaf ? ", style=dashed" : "") << ']';
  };
  const auto write_edge = [&](std::ostream& out, const auto& edge) {
    if (g[edge] > 0) out << "[taillabel=\"#" << g[edge] << "\"]";
  };
  const auto write_graph = [&](std::ostream& out) {
    out << "label=\"" << escaped(module.name) << ": " << escaped(entry.name)
        << ", costs at B=" << point[Symbol::B] << " T=" << point[Symbol::T] << " S=" << point[Symbol::S]
        << "\";\n"
        << "node [shape=box, fontname=\"monospace\"];\n";
  };
  std::ostringstream out;
  boost::write_graphviz(out, living, write_vertex, write_edge, write_graph);
  return out.str();
}

}  // namespace tfc::ir
