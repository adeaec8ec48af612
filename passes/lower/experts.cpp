// Mixtures of experts: who goes where, and the products of rows by expert.
#include "ir/check.h"
#include "passes/lower/product_plan.h"
#include "passes/lower/rows.h"

namespace tfc::passes {

namespace {

using ir::Arg;
using ir::Attributes;
using ir::Dim;
using ir::Type;
using ir::Value;

constexpr int64_t kExponentialFlops = 16;

Arg integer(const Dim& value) { return Lowering::integer(value); }

/// X, of `starts`.
int64_t experts_of(Lowering& l, uint32_t starts) {
  return *l.type(l.operand(starts)).shape[0].constant() - 1;
}

/// A record over chunks of tokens, of `width` elements for each choice.
struct TokenCall {
  Attributes attributes;
  int64_t chunk;
  Dim tokens;

  TokenCall(const Type& choices, int64_t experts, int64_t elements) : tokens(choices.rows()) {
    const int64_t top_k = static_width(choices);
    chunk = rows_per_task(elements);
    attributes = {{"top_k", top_k}, {"chunk", chunk}};
    if (experts > 0) attributes.set("experts", experts);
  }
  Dim tasks() const { return ceildiv(tokens, chunk); }
};

}  // namespace

void lower_Route(Lowering& l) {
  const Type& choices = l.type(l.result(1));
  const Location logits = l.locate(l.operand(0));
  const int64_t X = static_width(l.type(l.operand(0))), J = static_width(choices);
  const auto result = [&](uint32_t i, int64_t bytes) {
    if (l.used(l.result(i))) return l.pointer(l.result(i));
    return l.temporary("unread" + std::to_string(i), l.type(l.result(i)).elements() * Dim(bytes));
  };
  const Arg weights = result(0, ir::dtype_bytes(l.module().real)), experts = result(1, 4);
  TokenCall call(choices, X, X * (J + kExponentialFlops));
  call.attributes.set("renormalize", l.attributes().flag("renormalize"));
  ir::Record record =
      kernel_call(l, "route", call.attributes, call.tasks(),
                  {integer(call.tokens), weights, experts, logits.pointer, integer(logits.stride),
                   l.operand(1).valid() ? l.pointer(l.operand(1)) : null_pointer()},
                  call.tokens * Dim(X * (J + kExponentialFlops)), call.tokens * Dim(X + 2 * J));
  record.scratch = (X * 4 + 63) / 64 * 64;
  l.call(std::move(record));
  l.call(kernel_call(l, "route_places",
                     {{"experts", X}, {"top_k", J}, {"capacity", l.attributes().real("capacity")}}, 1,
                     {integer(call.tokens), result(2, 4), result(3, 4), experts}, call.tokens * Dim(4 * J),
                     call.tokens * Dim(2 * J)));
}

void lower_RouteGrad(Lowering& l) {
  const Location dlogits = l.locate(l.result()), logits = l.locate(l.operand(3));
  const int64_t X = logits.width;
  TokenCall call(l.type(l.operand(0)), X, X * kExponentialFlops);
  call.attributes.set("renormalize", l.attributes().flag("renormalize"));
  l.call(
      kernel_call(l, "route_grad", call.attributes, call.tasks(),
                  {integer(call.tokens), dlogits.pointer, integer(dlogits.stride), l.pointer(l.operand(0)),
                   l.pointer(l.operand(1)), l.pointer(l.operand(2)), logits.pointer, integer(logits.stride)},
                  call.tokens * Dim(X * kExponentialFlops), call.tokens * Dim(2 * X)));
}

void lower_Dispatch(Lowering& l) {
  const Location out = l.locate(l.result()), x = l.locate(l.operand(0));
  const Type& choices = l.type(l.operand(1));
  TokenCall call(choices, experts_of(l, 2), x.width * static_width(choices));
  call.attributes.set("width", x.width);
  l.call(kernel_call(l, "dispatch", call.attributes, call.tasks(),
                     {integer(call.tokens), out.pointer, integer(out.stride), x.pointer, integer(x.stride),
                      l.pointer(l.operand(1)), l.pointer(l.operand(2))},
                     0, choices.elements() * Dim(2 * x.width)));
}

void lower_ExpertKeys(Lowering& l) {
  const Type& choices = l.type(l.operand(1));
  TokenCall call(choices, experts_of(l, 3), 3 * static_width(choices));
  call.attributes.set("width", int64_t{3});
  l.call(kernel_call(l, "expert_keys", call.attributes, call.tasks(),
                     {integer(call.tokens), l.pointer(l.result()), l.pointer(l.operand(0)), l.pointer(l.operand(1)),
                      l.pointer(l.operand(2)), l.pointer(l.operand(3))},
                     choices.elements() * Dim(6), choices.elements() * Dim(6)));
}

void lower_Combine(Lowering& l) {
  const Location out = l.locate(l.result()), x = l.locate(l.operand(0));
  const Type& choices = l.type(l.operand(1));
  TokenCall call(choices, 0, x.width * static_width(choices));
  call.attributes.set("width", x.width);
  const bool weighted = l.graph().operand_count(l.id()) > 3 && l.operand(3).valid();
  l.call(kernel_call(l, "combine", call.attributes, call.tasks(),
                     {integer(call.tokens), out.pointer, integer(out.stride), x.pointer, integer(x.stride),
                      l.pointer(l.operand(1)), weighted ? l.pointer(l.operand(3)) : null_pointer()},
                     choices.elements() * Dim(2 * x.width), choices.elements() * Dim(2 * x.width)));
}

void lower_CombineGrad(Lowering& l) {
  const Location dx = l.locate(l.result(0)), dy = l.locate(l.operand(0)), x = l.locate(l.operand(1));
  const Type& choices = l.type(l.operand(2));
  TokenCall call(choices, experts_of(l, 3), x.width * static_width(choices));
  call.attributes.set("width", x.width);
  l.call(kernel_call(l, "combine_grad", call.attributes, call.tasks(),
                     {integer(call.tokens), dx.pointer, integer(dx.stride), l.pointer(l.result(1)),
                      dy.pointer, integer(dy.stride), x.pointer, integer(x.stride), l.pointer(l.operand(2)),
                      l.pointer(l.operand(4)), l.pointer(l.operand(3))},
                     choices.elements() * Dim(3 * x.width), choices.elements() * Dim(3 * x.width)));
}

namespace {

ExpertRows expert_rows(Lowering& l, uint32_t starts) {
  return {l.pointer(l.operand(starts)), experts_of(l, starts)};
}

/// Operands 0 and 1 as A and B; rows by the experts of operand `starts`. Forms nt and nn: A's rows make the result's.
Product product_by_expert(Lowering& l, const char* form, uint32_t starts) {
  Product product;
  product.form = form;
  product.c = l.locate(l.result());
  product.a = l.locate(l.operand(0));
  product.b = l.locate(l.operand(1));
  product.m = l.type(l.operand(0)).rows();
  product.n = product.c.width;
  product.k = product.a.width;
  product.experts = expert_rows(l, starts);
  return product;
}

}  // namespace

void lower_ExpertLinear(Lowering& l) {
  Product product = product_by_expert(l, "nt", 3);
  if (l.operand(2).valid()) product.bias = l.pointer(l.operand(2));
  lower_product(l, product);
}

void lower_ExpertLinearDx(Lowering& l) { lower_product(l, product_by_expert(l, "nn", 2)); }

void lower_ExpertLinearDw(Lowering& l) {
  Product product = product_by_expert(l, "tn", 2);
  product.m = product.a.width;
  product.n = product.b.width;
  product.k = l.type(l.operand(0)).rows();
  product.accumulate = l.accumulates(l.result()) ? 1 : 0;
  lower_product(l, product);
}

void lower_ExpertColumnSum(Lowering& l) {
  const Location dy = l.locate(l.operand(0));
  const Dim rows = l.type(l.operand(0)).rows();
  const int64_t stripes = (dy.width + 63) / 64, X = experts_of(l, 1);
  l.call(kernel_call(l, "column_sum", {{"parts", false}, {"experts", true}}, stripes * X,
                     {l.pointer(l.result()), dy.pointer, integer(rows), integer(dy.width), integer(dy.stride),
                      integer(l.accumulates(l.result()) ? 1 : 0), integer(stripes), integer(X), integer(0),
                      integer(0), l.pointer(l.operand(1))},
                     rows * Dim(dy.width), rows * Dim(dy.width)));
}

void lower_Balance(Lowering& l) {
  const Location logits = l.locate(l.operand(0));
  const Arg experts = l.pointer(l.operand(1));
  TokenCall call(l.type(l.operand(1)), logits.width, logits.width * kExponentialFlops);
  const Arg parts = l.temporary("parts", call.tasks() * Dim(logits.width * 8));
  l.call(kernel_call(l, "balance_parts", call.attributes, call.tasks(),
                     {integer(call.tokens), parts, logits.pointer, integer(logits.stride), experts},
                     call.tokens * Dim(logits.width * kExponentialFlops), call.tokens * Dim(logits.width)));
  const Arg slopes = l.used(l.result(1)) ? l.pointer(l.result(1)) : l.temporary("slopes", logits.width * 8);
  call.attributes.erase("chunk");
  call.attributes.set("factor", l.attributes().real("factor"));
  l.call(kernel_call(
      l, "balance_sum", call.attributes, 1,
      {integer(call.tokens), l.pointer(l.result(0)), slopes, parts, integer(call.tasks()), experts},
      call.tokens, call.tokens));
}

void lower_BalanceGrad(Lowering& l) {
  const Location dlogits = l.locate(l.result()), logits = l.locate(l.operand(3));
  TokenCall call(l.type(l.operand(2)), logits.width, logits.width * kExponentialFlops);
  l.call(
      kernel_call(l, "balance_grad", call.attributes, call.tasks(),
                  {integer(call.tokens), dlogits.pointer, integer(dlogits.stride), l.pointer(l.operand(0)),
                   l.pointer(l.operand(1)), l.pointer(l.operand(2)), logits.pointer, integer(logits.stride)},
                  call.tokens * Dim(logits.width * kExponentialFlops), call.tokens * Dim(2 * logits.width)));
}

void lower_AddBalance(Lowering& l) {
  std::vector<Arg> args = {l.pointer(l.result())};
  for (Value operand : l.graph().operands(l.id())) args.push_back(l.pointer(operand));
  const auto losses = static_cast<int64_t>(args.size()) - 3;
  l.call(kernel_call(l, "add_balance", {{"losses", losses}, {"share", l.attributes().real("share", 1.0)}}, 1, std::move(args), losses, losses));
}

void lower_BalanceScale(Lowering& l) {
  l.call(kernel_call(l, "balance_scale", {}, 1,
                     {l.pointer(l.result()), l.pointer(l.operand(0)), l.pointer(l.operand(1))}, 1, 3));
}

}  // namespace tfc::passes
