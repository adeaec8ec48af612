#include "ir/op_cases.h"

#include <cmath>
#include <random>

namespace tfc::ir {
namespace {

std::mt19937 generator(1);

Tensor real(std::vector<int64_t> shape) {
  Tensor tensor(DType::F64, std::move(shape));
  std::normal_distribution<double> normal;
  for (double& value : tensor.data) value = normal(generator);
  return tensor;
}

Tensor positive(std::vector<int64_t> shape) {
  Tensor tensor = real(std::move(shape));
  for (double& value : tensor.data) value = 0.1 + value * value;
  return tensor;
}

Tensor ids(std::vector<int64_t> shape, std::vector<double> values) {
  return {DType::I32, std::move(shape), std::move(values)};
}

Tensor mask(std::vector<int64_t> shape, std::vector<double> values) {
  return {DType::U8, std::move(shape), std::move(values)};
}

Tensor scalar(double value) { return {DType::F64, {}, {value}}; }

/// Words of rows, as dropout_keys makes them; the last row drops nothing.
Tensor dropout_keys(std::vector<int64_t> shape) {
  shape.push_back(3);
  Tensor keys(DType::I32, shape);
  for (double& word : keys.data) word = static_cast<int32_t>(generator());
  for (int64_t row = 0; row < keys.rows(); ++row) keys.row(row)[2] = row + 1 < keys.rows();
  return keys;
}

std::vector<OpCase> dropout_cases(OpKind op) {
  if (op == OpKind::DropoutKeys)
    return {{op, {ids({5}, {-3, 7, 1, -2, 1})}, {{"batch", Dim(2)}, {"tokens", Dim(3)}}}};
  if (op == OpKind::ExpertKeys)  // two experts; the last token is not routed, one choice has no row
    return {{op, {dropout_keys({1, 3}), ids({1, 3, 2}, {1, 0, 0, 1, -1, -1}), ids({1, 3, 2}, {2, 0, 1, -1, -1, -1}),
                  ids({3}, {0, 2, 3})}}};
  std::vector<OpCase> cases;
  if (op != OpKind::Dropout) return cases;
  for (const double p : {0.1, 0.5, 1.0})
    cases.push_back({op, {real({2, 3, 7}), dropout_keys({2, 3})}, {{"p", p}, {"place", std::string("here")}}});
  cases.push_back({op, {real({2, 1, 2, 5}), dropout_keys({2, 1, 2})}, {{"p", 0.5}, {"place", std::string("here")}}});
  return cases;
}

std::vector<OpCase> embedding_cases(OpKind op) {
  const Tensor some = ids({2, 3}, {4, 0, 2, 2, 1, 4}), real_tokens = mask({2, 3}, {1, 1, 0, 1, 0, 1});
  switch (op) {
    case OpKind::Embedding:
      return {{op, {some, real({5, 7})}, {{"scale", 1.0}}},
              {op, {some, real({5, 3}), real_tokens}, {{"scale", 2.5}}}};
    case OpKind::AddRows:
      return {{op, {real({2, 3, 5}), real({3, 5})}}, {op, {real({2, 3, 5}), real({2, 3, 5})}}};
    case OpKind::PositionRows:
      return {{op, {real({7, 5})}, {{"tokens", Dim(3)}}}};
    case OpKind::Sinusoid:
      return {{op, {}, {{"width", int64_t{5}}, {"tokens", Dim(3)}}},
              {op, {some}, {{"width", int64_t{5}}, {"tokens", Dim(3)}}}};
    case OpKind::RopeTable:
      return {{op, {}, {{"width", int64_t{6}}, {"theta", 10000.0}, {"tokens", Dim(3)}}},
              {op, {some}, {{"width", int64_t{6}}, {"theta", 10000.0}, {"tokens", Dim(3)}}}};
    case OpKind::Rope: {
      const auto with = [](const char* style, bool inverse) {
        return Attributes{{"heads", int64_t{3}},
                          {"head_dim", int64_t{2}},
                          {"style", std::string(style)},
                          {"inverse", inverse}};
      };
      const Tensor angles =
          ids({2, 5, 2}, std::vector<double>(20, 0.6));  // constants: integers have no derivative
      Tensor table = angles;
      table.dtype = DType::F64;
      return {{op, {real({2, 5, 6}), table}, with("half", false)},
              {op, {real({2, 5, 6}), table}, with("interleaved", true)}};
    }
    case OpKind::MaskRows:
      return {{op, {real({2, 3, 5}), real_tokens}}};
    case OpKind::Patches:
      return {{op, {real({2, 3, 4, 6})}, {{"size", int64_t{2}}}}, {op, {real({1, 1, 3, 3})}, {{"size", int64_t{3}}}}};
    case OpKind::Prepend:
      return {{op, {real({2, 3, 5}), real({5}), real({4, 5})}}, {op, {real({3, 1, 2}), real({2})}}};
    default:
      return {};
  }
}

std::vector<OpCase> elementwise_cases(OpKind op) {
  switch (op) {
    case OpKind::Add:
    case OpKind::Multiply:
      return {{op, {real({2, 3, 5}), real({2, 3, 5})}}};
    case OpKind::Scale:
      return {{op, {real({3, 7})}, {{"factor", -0.7}}}};
    case OpKind::ScaleColumns:
      return {{op, {real({2, 3, 5}), real({5})}}, {op, {real({3, 1}), real({1})}}};
    case OpKind::Activation: {
      std::vector<OpCase> cases;
      for (const char* kind : {"relu", "gelu", "gelu_tanh", "silu"})
        cases.push_back({op, {real({5, 7})}, {{"kind", std::string(kind)}}});
      return cases;
    }
    case OpKind::Residual:
      return {{op, {real({3, 5}), real({3, 5})}, {{"scale", 1.0}}},
              {op, {real({3, 5}), real({3, 5}), real({3, 5})}, {{"scale", 0.5}}}};
    case OpKind::Split:
      return {{op, {real({2, 3, 9})}, {{"widths", std::vector<int64_t>{5, 1, 3}}}}};
    case OpKind::Concat:
      return {{op, {real({2, 3, 1}), real({2, 3, 7}), real({2, 3, 2})}}};
    case OpKind::Edit:
      return {{op, {real({2, 3}), real({2, 3}), mask({2, 3}, {0, 1, 2, 2, 0, 1})}},
              {op, {real({1, 3, 2}), real({1, 3, 2}), mask({1, 3, 2}, {1, 2, 1, 2, 0, 1}), mask({1, 3}, {1, 0, 1})}}};
    default:
      return {};
  }
}

Attributes heads(int64_t H, int64_t G, int64_t E, bool causal) {
  return {{"heads", H}, {"kv_heads", G}, {"head_dim", E}, {"scale", 0.6}, {"causal", causal}};
}

std::vector<OpCase> attention_cases(OpKind op) {
  const Tensor some_keys = mask({2, 5}, {1, 0, 1, 1, 0, 0, 0, 0, 0, 0});  // the second row has no key at all
  const Tensor none = absent();
  Attributes dropped = heads(4, 2, 3, true);
  dropped.set("p", 0.4);
  dropped.set("place", std::string("layers.0.attn"));
  return {
      {op, {real({2, 3, 12}), real({2, 5, 6}), real({2, 5, 6}), none, none, none, none, none, none, none, none, none,
            dropout_keys({2, 3})}, dropped},
      {op, {real({2, 3, 6}), real({2, 5, 6}), real({2, 5, 6})}, heads(3, 3, 2, false)},
      {op, {real({2, 3, 6}), real({2, 5, 2}), real({2, 5, 2})}, heads(3, 1, 2, true)},
      {op,
       {real({1, 5, 3}), real({1, 2, 3}), real({1, 2, 3})},
       heads(1, 1, 3, true)},  // T > S: some see nothing
      {op, {real({2, 3, 12}), real({2, 5, 6}), real({2, 5, 6}), some_keys}, heads(4, 2, 3, false)},
      {op, {real({2, 5, 7}), real({2, 5, 7}), real({2, 5, 7}), some_keys}, heads(1, 1, 7, true)},
  };
}

/// Windows, prefixes, documents and distances, and all together.
std::vector<OpCase> sight_cases(OpKind op) {
  const Tensor q = real({2, 5, 6}), k = real({2, 5, 2}), none = absent();
  const Tensor prefix = ids({2}, {3, 0}), documents = ids({2, 5}, {7, 7, -1, -1, 7, 1, 2, 2, 2, 2}),
               positions = ids({2, 5}, {0, 1, 0, 4, 9, 3, 2, 1, 0, 0});
  const auto with = [](Attributes attributes, int64_t window, int64_t after, bool alibi) {
    attributes.set("window", window);
    attributes.set("after", after);
    attributes.set("alibi", alibi);
    return attributes;
  };
  const Attributes causal = heads(3, 1, 2, true), two_way = heads(3, 1, 2, false);
  return {
      {op, {q, k, k}, with(causal, 2, 0, false)},
      {op, {q, real({2, 3, 2}), real({2, 3, 2})}, with(two_way, 2, 1, true)},
      {op, {q, k, k, none, none, prefix}, causal},
      {op, {q, k, k, none, none, prefix}, with(causal, 2, 0, false)},
      {op, {q, k, k, none, none, none, documents, documents}, two_way},
      {op, {q, k, k, none, none, none, none, none, positions, positions}, with(two_way, 0, 0, true)},
      {op,
       {q, k, k, mask({2, 5}, {1, 0, 1, 1, 1, 0, 1, 1, 1, 1}), none, prefix, documents, documents, positions,
        positions},
       with(causal, 3, 0, true)},
  };
}

std::vector<OpCase> loss_cases(OpKind op) {
  std::vector<OpCase> cases;
  const Tensor targets = ids({2, 3}, {4, -100, 0, 2, 1, 4}), real_tokens = mask({2, 3}, {1, 1, 0, 1, 0, 1});
  for (const bool mean : {false, true}) {
    for (const double smoothing : {0.0, 0.1}) {
      const Attributes attributes{{"ignore_index", int64_t{-100}}, {"smoothing", smoothing}};
      cases.push_back(
          {op, {real({2, 3, 7}), real({5, 7}), real({5}), targets, real_tokens}, attributes, mean});
      cases.push_back({op, {real({2, 3, 3}), real({5, 3}), absent(), targets}, attributes, mean});
    }
  }
  cases.push_back({op,
                   {real({3, 2}), real({7, 2}), absent(), ids({3}, {6, 0, -1})},
                   {{"ignore_index", int64_t{-1}}, {"smoothing", 0.0}},
                   true});
  Tensor weights = positive({2, 3});
  weights[1] = 0;  // does not count
  for (const char* kind : {"cross_entropy", "binary_cross_entropy", "mse"}) {
    const bool classes = kind == std::string("cross_entropy"), yes_or_no = kind == std::string("binary_cross_entropy");
    Tensor numbers = real({2, 3, 5});
    if (yes_or_no)
      for (double& value : numbers.data) value = 0.5 + 0.5 * std::tanh(value);
    for (const bool mean : {false, true}) {
      const Attributes attributes{
          {"kind", std::string(kind)}, {"ignore_index", int64_t{-100}}, {"smoothing", 0.0}, {"share", 0.3}};
      const Tensor& of_rows = classes ? targets : numbers;
      cases.push_back(
          {op, {real({2, 3, 7}), real({5, 7}), real({5}), of_rows, real_tokens, weights}, attributes, mean});
      cases.push_back({op, {real({2, 3, 7}), real({5, 7}), absent(), of_rows, absent(), weights}, attributes, mean});
      cases.push_back({op, {real({2, 3, 7}), real({5, 7}), real({5}), of_rows}, attributes, mean});
    }
  }
  return cases;
}

std::vector<OpCase> pool_cases(OpKind op) {
  std::vector<OpCase> cases;
  const Tensor real_tokens =
      mask({3, 5}, {0, 1, 1, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0});  // the last row: none
  for (const char* kind : {"first", "mean", "last"}) {
    cases.push_back({op, {real({3, 5, 7}), real_tokens}, {{"kind", std::string(kind)}}});
    cases.push_back({op, {real({3, 5, 2})}, {{"kind", std::string(kind)}}});
  }
  return cases;
}

/// What a router makes of random logits.
struct Routed {
  Tensor weights, experts, positions, starts;
};

Routed routed(const std::vector<int64_t>& tokens, int64_t X, int64_t top_k, const Tensor& real_tokens, double capacity) {
  std::vector<int64_t> shape = tokens;
  shape.push_back(X);
  const OpCase route{OpKind::Route,
                     {real(shape), real_tokens},
                     {{"top_k", top_k}, {"renormalize", true}, {"capacity", capacity}}};
  shape.back() = top_k;
  std::vector<Tensor> results = {Tensor(DType::F64, shape), Tensor(DType::I32, shape), Tensor(DType::I32, shape),
                                 Tensor(DType::I32, {X + 1})};
  evaluate(OpKind::Route,
           {std::vector<const Tensor*>{&route.operands[0], is_absent(real_tokens) ? nullptr : &route.operands[1]},
            results, route.attributes});
  return {results[0], results[1], results[2], results[3]};
}

/// Fewer tokens than experts, all of them, some masked, some dropped.
std::vector<OpCase> expert_cases(OpKind op) {
  const Tensor some = mask({2, 3}, {1, 1, 0, 1, 0, 1});
  if (op == OpKind::Route) {
    const auto with = [](int64_t top_k, bool renormalize, double capacity) {
      return Attributes{{"top_k", top_k}, {"renormalize", renormalize}, {"capacity", capacity}};
    };
    return {{op, {real({2, 3, 5}), some}, with(2, true, 0.0)},  {op, {real({2, 3, 5}), some}, with(2, false, 0.7)},
            {op, {real({4, 3})}, with(1, true, 0.0)},           {op, {real({4, 3})}, with(1, false, 0.0)},
            {op, {real({7, 4})}, with(4, true, 0.0)},           {op, {real({7, 4})}, with(4, false, 0.3)},
            {op, {real({3, 1})}, with(1, false, 0.0)}};
  }
  std::vector<OpCase> cases;
  for (const double capacity : {0.0, 0.6}) {
    const Routed two = routed({2, 3}, 3, 2, some, capacity), one = routed({2}, 4, 1, absent(), capacity);
    switch (op) {
      case OpKind::Dispatch:
        cases.push_back({op, {real({2, 3, 5}), two.positions, two.starts}});
        cases.push_back({op, {real({2, 1}), one.positions, one.starts}});
        break;
      case OpKind::Combine:
        cases.push_back({op, {real({2, 3, 2, 5}), two.positions, two.starts, real({2, 3, 2})}});
        cases.push_back({op, {real({2, 1, 3}), one.positions, one.starts, real({2, 1})}});
        break;
      case OpKind::ExpertLinear:
        cases.push_back({op, {real({2, 3, 2, 4}), real({9, 4}), real({9}), two.starts}});
        cases.push_back({op, {real({2, 1, 3}), real({8, 3}), absent(), one.starts}});
        break;
      case OpKind::Balance:
        cases.push_back({op, {real({2, 3, 3}), two.experts}, {{"factor", 0.7}}});
        cases.push_back({op, {real({2, 4}), one.experts}, {{"factor", 2.0}}});
        break;
      default:
        break;
    }
  }
  if (op == OpKind::Balance)  // nothing is routed
    cases.push_back({op, {real({2, 3}), ids({2, 1}, {-1, -1})}, {{"factor", 1.0}}});
  if (op == OpKind::AddBalance)
    for (const bool mean : {false, true}) cases.push_back({op, {scalar(7), scalar(3), scalar(0.5), scalar(2)}, {}, mean});
  return cases;
}

/// Operations without a derivative rule that no derivative rule uses: values alone are tested
/// (interpreter_test).
std::vector<OpCase> other_cases(OpKind op) {
  switch (op) {
    case OpKind::AttentionWeights:
      return {{op,
               {real({2, 3, 8}), real({2, 5, 4}), real({2, 4, 3}), mask({2, 5}, {1, 0, 1, 1, 1, 1, 1, 1, 1, 0}), absent(),
                mask({2, 3}, {1, 1, 0, 1, 1, 1})},
               {{"heads", int64_t{4}}, {"kv_heads", int64_t{2}}, {"head_dim", int64_t{2}}, {"scale", 0.7}, {"causal", true}}}};
    case OpKind::CacheAppend:
      return {{op, {real({2, 5, 3}), real({2, 2, 3}), ids({2}, {3, 0}), mask({2, 2}, {1, 1, 0, 1})}},
              {op, {real({1, 5, 3}), real({1, 7, 3}), ids({1}, {9})}, {{"ring", true}}}};
    case OpKind::LinearLogprob:
      return {{op,
               {real({3, 2}), real({7, 2}), real({7}), ids({3}, {6, 0, -1})},
               {{"ignore_index", int64_t{-1}}}}};
    case OpKind::SumSquares:
      return {{op, {real({7})}}};
    case OpKind::ClipScale:
      return {{op, {scalar(9), scalar(3), scalar(0.5)}}};
    case OpKind::AdamW:
      return {{op,
               {real({32}),
                real({32}),
                real({32}),
                positive({32}),
                scalar(0.5),
                {DType::F64, {8}, {0.01, 0.9, 0.95, 1e-8, 0.1, 3, 0, 0}},
                {DType::F64, {2}, {1, 0.5}},
                {DType::F64, {2}, {1, 0}}}}};
    default:
      return {};
  }
}

}  // namespace

std::vector<OpCase> cases_of(OpKind op) {
  switch (op) {
    case OpKind::Linear:
      return {{op, {real({2, 3, 5}), real({7, 5}), real({7})}}, {op, {real({3, 1}), real({2, 1})}}};
    case OpKind::LinearDx:
      return {{op, {real({2, 3, 5}), real({5, 7})}}, {op, {real({3, 1}), real({1, 2})}}};
    case OpKind::LayerNorm:
      return {{op, {real({2, 3, 5}), real({5}), real({5})}, {{"eps", 1e-5}}},
              {op, {real({3, 7}), real({7})}, {{"eps", 1e-3}}},
              {op, {real({3, 1}), real({1}), real({1})}, {{"eps", 1e-1}}}};
    case OpKind::RmsNorm:
      return {{op, {real({2, 3, 5}), real({5})}, {{"eps", 1e-5}}},
              {op, {real({3, 1}), real({1})}, {{"eps", 1e-1}}}};
    case OpKind::Attention:
      {
        std::vector<OpCase> cases = attention_cases(op), more = sight_cases(op);
        cases.insert(cases.end(), more.begin(), more.end());
        return cases;
      }
    case OpKind::Pool:
      return pool_cases(op);
    case OpKind::AnyReal:
      return {{op, {mask({3, 2}, {0, 1, 0, 0, 1, 0})}, {}}};
    case OpKind::LinearLoss:
      return loss_cases(op);
    default:
      break;
  }
  for (const auto& family : {embedding_cases, elementwise_cases, dropout_cases, expert_cases, other_cases})
    if (std::vector<OpCase> cases = family(op); !cases.empty()) return cases;
  return {};
}

CaseGraph build(const OpCase& op_case) {
  CaseGraph made;
  made.graph.real = DType::F64;
  for (size_t i = 0; i < op_case.operands.size(); ++i) {
    const Tensor& tensor = op_case.operands[i];
    if (is_absent(tensor)) {
      made.leaves.push_back({});
      continue;
    }
    Node leaf;
    leaf.op = OpKind::Input;
    leaf.name = "x" + std::to_string(i);
    leaf.attributes.set("name", leaf.name);
    leaf.results = {{tensor.dtype, Shape(tensor.shape.begin(), tensor.shape.end())}};
    made.leaves.push_back({made.graph.add_node(std::move(leaf), {}), 0});
  }
  made.node = made.graph.add(op_case.op, made.leaves, op_case.attributes, "op");
  return made;
}

}  // namespace tfc::ir
