// Tokens, positions and token types, or images, become the stack's first hidden states.
#include "passes/expand/expander.h"

namespace tfc::passes {

using ir::NodeId;
using ir::OpKind;
using ir::Value;

Value Expander::embedding(NodeId id) {
  const ir::Attributes& set = attributes(id);
  const std::string name = block(id).name;
  const int64_t d = set.integer("dim", module_.facts.integer("d_model"));
  const Value mask = operand(id, 2);
  Value x = operand(id, 0);
  if (const std::string table = set.text("table", ""); !table.empty()) {
    const int64_t vocab = set.integer("vocab");
    const auto tied = tied_.find(table);
    if (tied != tied_.end()) tied->second = set.text("projection", "");
    const Value rows = parameter(table, {vocab, d}, initialiser_.table(vocab, d, tied != tied_.end()));
    x = add(OpKind::Embedding, {x, rows, mask}, {{"scale", set.real("scale", 1.0)}}, name + ".tokens");
  }
  const std::string position = set.text("position", "none");
  if (set.integer("patch", 0) > 0) return finished_embedding(id, patches(id, x, position));
  const ir::Dim tokens = result.type(x).shape[1];
  if (position == "learned") {
    x = learned_positions(id, x);
  } else if (position == "sinusoidal") {
    x = add(OpKind::AddRows, {x, sinusoid(tokens, d)}, {}, name + ".placed");
  }
  if (const int64_t types = set.integer("types", 0); types > 0) {
    const Value table = parameter("type_emb.weight", {types, d}, initialiser_.table(types, d, false));
    const Value rows =
        add(OpKind::Embedding, {operand(id, 1), table, mask}, {{"scale", 1.0}}, name + ".types");
    x = add(OpKind::Add, {x, rows}, {}, name + ".typed");
  }
  return projected(id, finished_embedding(id, x));
}

/// From the width of the tables to that of the layers (Lan et al. 2020).
Value Expander::projected(NodeId id, Value x) {
  const std::string prefix = attributes(id).text("projection", "");
  const int64_t d = module_.facts.integer("d_model"), in = width(x);
  if (prefix.empty() || attributes(id).text("table", "").empty()) return x;
  parameter(prefix + ".weight", {d, in}, initialiser_.matrix(d, in));
  parameter(prefix + ".bias", {d}, initialiser_.bias(in));
  return linear(x, prefix, true);
}

/// What follows the sum of the embeddings: norm and dropout.
Value Expander::finished_embedding(NodeId id, Value x) {
  const ir::Attributes& set = attributes(id);
  if (set.flag("norm")) {
    x = apply_norm(x, set.text("norm.prefix"), set.text("norm.type"), set.real("norm.eps"),
                   set.flag("norm.bias"));
  }
  return dropped(x, set.real("dropout", 0.0), block(id).name + ".dropout");
}

/// An image's patches through one product, the class token before them, and positions, whose table has a row
/// for each (Dosovitskiy et al. 2021).
Value Expander::patches(NodeId id, Value image, const std::string& position) {
  const ir::Attributes& set = attributes(id);
  const std::string name = block(id).name, prefix = "patch_emb";
  const int64_t d = module_.facts.integer("d_model"), tokens = *set.dim("tokens").constant();
  const Value pixels = add(OpKind::Patches, {image}, {{"size", set.integer("patch")}}, name + ".pixels");
  const int64_t width = this->width(pixels);
  parameter(prefix + ".weight", {d, width}, initialiser_.matrix(d, width));
  parameter(prefix + ".bias", {d}, initialiser_.bias(width));
  const Value x = linear(pixels, prefix, true);
  const bool first = set.flag("class_token");
  const Value token = first ? parameter("cls_token", {d}, initialiser_.table(1, d, false)) : Value{};
  Value rows;
  if (position == "learned") {
    rows = parameter(set.text("pos_table"), {tokens, d}, initialiser_.table(tokens, d, false));
  } else if (position == "sinusoidal") {
    rows = sinusoid(tokens, d);
  }
  if (first) return add(OpKind::Prepend, {x, token, rows}, {}, name + ".placed");
  return rows.valid() ? add(OpKind::AddRows, {x, rows}, {}, name + ".placed") : x;
}

/// Rows of the table in order, or, where positions are an input, looked up as tokens are.
Value Expander::learned_positions(NodeId id, Value x) {
  const ir::Attributes& set = attributes(id);
  const std::string name = block(id).name;
  const int64_t rows = set.integer("max_seq"), d = width(x);
  const ir::Dim tokens = result.type(x).shape[1];
  const Value table = parameter(set.text("pos_table"), {rows, d}, initialiser_.table(rows, d, false));
  if (const Value positions = declared("positions", tokens); positions.valid()) {
    const Value added = add(OpKind::Embedding, {positions, table, operand(id, 2)}, {{"scale", 1.0}},
                            name + ".positions");
    return add(OpKind::Add, {x, added}, {}, name + ".placed");
  }
  const Value first = add(OpKind::PositionRows, {table}, {{"tokens", tokens}}, name + ".positions");
  return add(OpKind::AddRows, {x, first}, {}, name + ".placed");
}

Value Expander::sinusoid(const ir::Dim& tokens, int64_t width) {
  const std::string name = "sinusoid." + tokens.text();
  Value& table = position_tables_[name + "." + std::to_string(width)];
  if (!table.valid()) table = add(OpKind::Sinusoid, {declared("positions", tokens)}, {{"width", width}, {"tokens", tokens}}, name);
  return table;
}

Value Expander::rope_table(NodeId id, const ir::Dim& tokens) {
  const int64_t width = attributes(id).integer("head_dim");
  const double theta = attributes(id).real("rope_theta");
  const std::string name = "rope." + tokens.text();
  Value& table = position_tables_[name + "." + std::to_string(width) + "." + ir::attribute_text(theta)];
  if (!table.valid()) {
    table = add(OpKind::RopeTable, {declared("positions", tokens)}, {{"width", width}, {"theta", theta}, {"tokens", tokens}}, name);
  }
  return table;
}

}  // namespace tfc::passes
