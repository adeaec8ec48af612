#include "models/random_blocks.h"

#include <algorithm>
#include <sstream>

namespace tfc::models {
namespace {

/// Lines of keys as the inside of an inline table.
std::string inlined(const std::string& keys) {
  std::string text;
  std::istringstream lines(keys);
  for (std::string line; std::getline(lines, line);) text += (text.empty() ? "" : ", ") + line;
  return text;
}

std::string random_dropout(RandomSource& draw, const BlockFacts& facts) {
  return facts.drops && draw.chance(25) ? "dropout = " + draw.word({"0.0", "0.1", "0.5", "1.0"}) + "\n" : "";
}

/// Some with a capacity, which makes tokens depend on each other.
std::string random_experts(RandomSource& draw) {
  const int64_t count = draw.between(0, 5);
  std::ostringstream table;
  table << "moe = { experts = " << count;
  if (count > 0) table << ", top_k = " << draw.between(1, count);
  if (count > 0 && draw.chance(50)) table << ", renormalize = false";
  if (count > 0 && draw.chance(40)) table << ", aux_loss = 0.1";
  if (count > 0 && draw.chance(30)) table << ", capacity = " << draw.word({"0.4", "0.9", "1.5"});
  table << " }\n";
  return table.str();
}

/// A block's nodes: each draws its inputs from what is there; what nobody has read is gathered at the end.
class NodeList {
 public:
  NodeList(RandomSource& draw, const BlockFacts& facts, bool memory)
      : draw_(draw), facts_(facts), memory_(memory), values_{{"x", facts.width, false}} {}

  std::string text() {
    const int64_t count = draw_.between(1, 5);
    for (int64_t i = 0; i < count; ++i) node();
    gather();
    return "nodes = [\n" + lines_.str() + "]\n";
  }

 private:
  struct Value {
    std::string id;
    int64_t width;
    bool read;
  };

  std::string read(size_t value) {
    values_[value].read = true;
    return values_[value].id;
  }

  void add(const std::string& op, const std::string& in, const std::string& keys, int64_t width) {
    const std::string id = "n" + std::to_string(values_.size());
    lines_ << "  { id = \"" << id << "\", op = \"" << op << "\", in = " << in << (keys.empty() ? "" : ", ")
           << inlined(keys) << " },\n";
    values_.push_back({id, width, false});
  }
  void add(const std::string& op, size_t from, const std::string& keys, int64_t width) {
    add(op, '"' + read(from) + '"', keys, width);
  }

  void node() {
    // A value that nobody has read yet is the likelier one: chains, with branches now and then.
    size_t from = values_.size() - 1;
    if (draw_.chance(35)) from = draw_.place_in(values_);
    const int64_t width = values_[from].width;
    switch (draw_.between(1, 8)) {
      case 1:
      case 2:
        return attention(from, width);
      case 3:
      case 4:
        return add("ffn", from, random_ffn(draw_, facts_), width);
      case 5:
        return add("norm", from, random_norm(draw_), width);
      case 6: {
        const int64_t out = draw_.one_of<int64_t>({1, 5, 16, 17});
        return add("linear", from,
                   "out = " + std::to_string(out) + "\n" + (draw_.chance(30) ? "bias = false\n" : ""), out);
      }
      case 7:
        return add("activation", from,
                   "kind = \"" + draw_.word({"relu", "gelu", "gelu_tanh", "silu"}) + "\"\n", width);
      default:
        return pair_of(from);
    }
  }

  void attention(size_t from, int64_t width) {
    std::string keys = random_head_keys(draw_, facts_) + random_attention(draw_, facts_);
    // Without widths of its own a node has the model's, which need not divide another width.
    if (keys.find("head_dim") == std::string::npos) keys += "head_dim = 4\n";
    if (memory_ && draw_.chance(50))
      keys += "source = \"memory\"\n";
    else
      keys += random_sight(draw_, facts_);
    add("attention", from, keys, width);
  }

  /// multiply or residual of two values of one width.
  void pair_of(size_t from) {
    std::vector<size_t> equal;
    for (size_t i = 0; i < values_.size(); ++i)
      if (values_[i].width == values_[from].width) equal.push_back(i);
    const std::string other = read(equal[draw_.place_in(equal)]);
    const std::string in = "[\"" + read(from) + "\", \"" + other + "\"]";
    if (draw_.chance(40)) return add("multiply", in, "", values_[from].width);
    add("residual", in, random_residual(draw_, facts_), values_[from].width);
  }

  void gather() {
    for (size_t i = 1; i < values_.size(); ++i)
      if (!values_[i].read && values_[i].width != facts_.width)
        add("linear", i, "out = " + std::to_string(facts_.width) + "\n", facts_.width);
    std::string unread;
    const bool skip = draw_.chance(80) || !values_[0].read;
    if (skip) unread = '"' + read(0) + '"';
    for (size_t i = 1; i < values_.size(); ++i)
      if (!values_[i].read) unread += (unread.empty() ? "\"" : ", \"") + read(i) + '"';
    if (unread.find(',') != std::string::npos)
      add("residual", "[" + unread + "]", random_residual(draw_, facts_), facts_.width);
  }

  RandomSource& draw_;
  const BlockFacts& facts_;
  const bool memory_;
  std::vector<Value> values_;
  std::ostringstream lines_;
};

}  // namespace

std::string random_head_keys(RandomSource& draw, const BlockFacts& facts) {
  const int64_t groups = draw.between(1, 3), shared = draw.between(1, 3);
  std::ostringstream keys;
  keys << "heads = " << groups * shared << "\n";
  keys << "kv_heads = " << groups << "\n";
  keys << "head_dim = "
       << (facts.rope ? draw.one_of<int64_t>({2, 4, 8, 16, 18}) : draw.one_of<int64_t>({1, 3, 4, 9, 16, 17}))
       << "\n";
  return keys.str();
}

std::string random_attention(RandomSource& draw, const BlockFacts& facts) {
  std::ostringstream keys;
  if (draw.chance(30)) keys << "bias = false\n";
  if (draw.chance(15)) keys << "qkv_bias = true\n";
  if (draw.chance(15)) keys << "o_bias = false\n";
  if (draw.chance(15)) keys << "scale = 0.3\n";
  keys << random_dropout(draw, facts);
  return keys.str();
}

std::string random_sight(RandomSource& draw, const BlockFacts& facts) {
  std::ostringstream keys;
  const bool window = draw.chance(25);
  if (window) keys << "window = " << draw.one_of<int64_t>({1, 2, 3, 8, 15, 16, 40}) << "\n";
  if (window && (facts.pair || !facts.decoder) && draw.chance(50))
    keys << "window_after = " << draw.one_of<int64_t>({1, 2, 7, 16}) << "\n";
  if (facts.prefix && draw.chance(70)) keys << "prefix = true\n";
  return keys.str();
}

std::string random_ffn(RandomSource& draw, const BlockFacts& facts) {
  std::ostringstream keys;
  if (draw.chance(70))
    keys << "activation = \"" << draw.word({"relu", "gelu", "gelu_tanh", "silu", "swiglu", "geglu", "reglu"})
         << "\"\n";
  if (draw.chance(30)) keys << "bias = false\n";
  keys << random_dropout(draw, facts);
  if (facts.experts && draw.chance(60)) keys << random_experts(draw);
  return keys.str();
}

std::string random_norm(RandomSource& draw) {
  std::ostringstream keys;
  if (draw.chance(40)) {
    keys << "type = \"rmsnorm\"\n";
  } else if (draw.chance(30)) {
    keys << "bias = false\n";
  }
  if (draw.chance(20)) keys << "eps = 1e-3\n";
  return keys.str();
}

std::string random_residual(RandomSource& draw, const BlockFacts& facts) {
  std::string keys = draw.chance(20) ? "scale = 0.7\n" : "";
  if (draw.chance(15)) keys += "gamma = " + draw.word({"0.0", "0.1", "1.0"}) + "\n";
  return keys + random_dropout(draw, facts);
}

std::string random_settings(RandomSource& draw, const BlockFacts& facts) {
  std::string text;
  const auto part = [&](const char* name, const std::string& keys) {
    if (draw.chance(60) && !keys.empty()) text += std::string(name) + " = { " + inlined(keys) + " }\n";
  };
  part("attention", random_head_keys(draw, facts) + random_attention(draw, facts) + random_sight(draw, facts));
  part("ffn", random_ffn(draw, facts) + (draw.chance(30) ? "d_ff = 7\n" : ""));
  const bool placed = draw.chance(20);
  part("norm", random_norm(draw) + (placed ? "placement = \"" + draw.word({"pre", "post", "sandwich"}) + "\"\n" : ""));
  part("residual", random_residual(draw, facts));
  return text;
}

std::string random_block(RandomSource& draw, const BlockFacts& facts, bool memory) {
  return draw.chance(50) ? NodeList(draw, facts, memory).text() : random_settings(draw, facts);
}

}  // namespace tfc::models
