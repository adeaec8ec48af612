// What the verifier refuses, one fault at a time, made in the sample dumps.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "ir/module.h"
#include "ir/op_attributes.h"

namespace tfc::ir {
namespace {

/// The sample with `from` replaced by `to`, which makes it wrong; the messages, without places.
std::string faults(const std::string& name, const std::string& from, const std::string& to) {
  std::ifstream in(std::string(TFC_SOURCE_DIR) + "/tests/ir/samples/" + name);
  std::ostringstream buffer;
  buffer << in.rdbuf();
  std::string text = buffer.str();
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  if (at == std::string::npos) return "";
  text.replace(at, from.size(), to);
  Diagnostics diagnostics;
  const auto file = std::make_shared<SourceFile>(SourceFile{"m.tcir", text});
  EXPECT_FALSE(read_module(file, diagnostics).has_value()) << from << " -> " << to;
  std::string messages;
  for (const Diagnostic& diagnostic : diagnostics.all()) messages += diagnostic.message + "\n";
  return messages;
}

TEST(Verify, Parameters) {
  EXPECT_EQ(faults("ops.tcir", "q.weight [6, 6] at 80", "q.weight [6, 6] at 96"),
            "parameter 'q.weight' is at 96, the layout puts it at 80\n");
  EXPECT_EQ(faults("ops.tcir", "k.weight [2, 6]", "k.weight [2, 7]"),
            "parameter 'k.weight' joins the one before it, whose shape differs past the first axis\n"
            "parameter 'v.weight' joins the one before it, whose shape differs past the first axis\n"
            "parameter 'v.weight' is at 128, the layout puts it at 130\n");
  EXPECT_EQ(faults("joint.tcir", "  b [5] at 16", "  w [5] at 16"), "parameter 'w' is there twice\n");
  EXPECT_NE(faults("joint.tcir", "w [5, 3]", "w [0, 3]").find("expected sizes from 1 up"), std::string::npos);
  EXPECT_NE(faults("joint.tcir", "w [5, 3]", "w [4611686018427387904, 4]").find("fewer than 2^48"),
            std::string::npos);
}

TEST(Verify, ParameterLeaves) {
  EXPECT_EQ(faults("ops.tcir", "{name = \"q.weight+k.weight+v.weight\"}", "{name = \"q.weight+v.weight\"}"),
            "in entry model: %qkv.weight (param): 'v.weight' does not join the parameter before it in "
            "'q.weight+v.weight'\n");
  EXPECT_EQ(
      faults("ops.tcir", "{name = \"o.weight\"}", "{name = \"o.wieght\"}"),
      "in entry model: %o.weight (param): there is no parameter 'o.wieght', did you mean 'o.weight'?\n");
  EXPECT_EQ(faults("joint.tcir", "%p = state() {name = \"*\", space = \"params\"} : f32[32]",
                   "%p = state() {name = \"*\", space = \"prams\"} : f32[32]"),
            "in entry step: %p (state): space 'prams' is unknown, expected params, grads, moment1, moment2, "
            "cache or edits\n");
}

TEST(Verify, Legality) {
  EXPECT_EQ(faults("ops.tcir", "phase ops", "phase blocks").substr(0, 81),
            "in entry model: %emb (embedding): may not stand in phase blocks\nin entry model: %");
  EXPECT_NE(faults("joint.tcir", "phase joint", "phase ops").find("expected it to be called model"),
            std::string::npos);
  EXPECT_EQ(faults("ops.tcir", "phase ops", "phase joint"),
            "in entry model: there is no entry of this name from phase joint on\n");
  EXPECT_EQ(faults("fused.tcir", "%a2 = argument() {index = 2}", "%a2 = param() {name = \"b\"}"),
            "in entry infer: %a2 (param): may not stand in the body of a fused node\n");
  EXPECT_NE(faults("fused.tcir", "phase fused", "phase joint").find("may not stand in phase joint"),
            std::string::npos);
  EXPECT_EQ(faults("planned.tcir", "phase planned", "phase joint"),
            "in entry infer: has a plan, which phase joint does not know\n");
  EXPECT_EQ(faults("fused.tcir", "phase fused", "phase planned"),
            "in entry infer: has no plan, which phase planned needs\n");
}

TEST(Verify, Structure) {
  EXPECT_EQ(
      faults("ops.tcir", "%emb = embedding(%tokens, %tok_emb.weight, %mask)", "%emb = embedding(%tokens)"),
      "in entry model: %emb (embedding): has 1 operands, expected 2 to 3\n");
  EXPECT_EQ(faults("ops.tcir", "%x = residual(%emb, %o)", "%x = residual(%x, %o)"),
            "in entry model: the graph has a cycle\n");
  EXPECT_EQ(faults("ops.tcir", "linear(%attn, %o.weight)", "linear(_, %o.weight)"),
            "in entry model: %o (linear): operand x is missing\n");
  EXPECT_EQ(faults("ops.tcir", "%q = rope(%split, %table)", "%q = rope(%split#1, %table)"),
            "in entry model: %q (rope): x is f32[B,T,2], expected f32[B,T,6]\n");
  EXPECT_EQ(
      faults("ops.tcir", "widths = [6, 2, 2]", "widths = [6, 2, 3]"),
      "in entry model: %split (split): the widths of split add up to 11, expected 10, the width of x\n");
  EXPECT_EQ(faults("ops.tcir", "output output = %logits", "output loss.sum = %logits"),
            "in entry model: there are two outputs called 'loss.sum'\n");
  EXPECT_EQ(faults("ops.tcir", "output output = %logits", "output output = _"),
            "in entry model: output 'output' has no value\n");
  EXPECT_EQ(faults("ops.tcir", "%o = linear(%attn, %o.weight) : f32[B,T,6]",
                   "%o = linear(%attn, %o.weight) : f32[B,T,0]"),
            "in entry model: %o (linear): its type f32[B,T,0] has a size below 1\n"
            "in entry model: %x (residual): y is f32[B,T,0], expected f32[B,T,6]\n");
}

TEST(Verify, Attributes) {
  EXPECT_EQ(faults("ops.tcir", "{eps = 1e-05}", "{epz = 1e-05}"),
            "in entry model: %norm (layer_norm): attribute 'eps' is missing\n");
  EXPECT_EQ(faults("ops.tcir", "{eps = 1e-05}", "{eps = 1}"),
            "in entry model: %norm (layer_norm): attribute 'eps' is 1, expected a real number\n");
  EXPECT_EQ(faults("ops.tcir", "{eps = 1e-05}", "{eps = 1e-05, esp = 2.0}"),
            "in entry model: %norm (layer_norm): attribute 'esp' is unknown, did you mean 'eps'?\n");
  EXPECT_EQ(faults("fused.tcir", "kind = \"gelu\"", "kind = \"glu\""),
            "in entry infer: %act (activation): activation 'glu' is unknown, expected relu, gelu, gelu_tanh "
            "or silu\n");
}

TEST(Verify, FusedBodies) {
  EXPECT_EQ(faults("fused.tcir", "{index = 2}", "{index = 3}"),
            "in entry infer: %a2 (argument): the fused node has no operand 3\n");
  EXPECT_EQ(faults("fused.tcir", "    output 1 = %up\n", ""),
            "in entry infer: %y (fused): has 2 results, its body 1 outputs\n");
  EXPECT_EQ(faults("fused.tcir", "output 1 = %up", "output 1 = %a2"),
            "in entry infer: %y (fused): result 1 is f32[B,T,5], its body gives f32[5]\n");
}

TEST(Verify, Donations) {
  // A reader of the old gradients that needs the new ones cannot run first.
  EXPECT_EQ(faults("joint.tcir", "  output loss.sum",
                   "  %late = add(%sum.w, %grads.w) : f32[5,3]\n  output loss.sum"),
            "in entry train: %sum.w (add): takes over the memory of %grads.w, which %late reads later\n");
  EXPECT_EQ(
      faults("joint.tcir", "output grad_x = %loss.grad#2", "output grad_x = %grads.w"),
      "in entry train: %sum.w (add): takes over the memory of %grads.w, which is the output 'grad_x'\n");
  EXPECT_EQ(faults("joint.tcir", "donates 0 : f32[5,3]", "donates 2 : f32[5,3]"),
            "in entry train: %sum.w (add): donates operand 2, which it does not have\n");
  EXPECT_EQ(faults("joint.tcir", "  output norm = %clip_scale#1",
                   "  output norm = %clip_scale#1\n  output old = %v"),
            "in entry step: %update (adamw): takes over the memory of %v, which is the output 'old'\n");
}

TEST(Verify, Plans) {
  EXPECT_EQ(faults("planned.tcir", "ws[0], ws[1], null", "ws[0], ws[3], null"),
            "in entry infer: plan: record 0 (product) points to ws[3], there are 3\n");
  EXPECT_EQ(faults("planned.tcir", "ext[0], params", "ext[2], params"),
            "in entry infer: plan: record 0 (product) points to ext[2], there are 2\n");
  EXPECT_EQ(faults("planned.tcir", "const[0]", "const[5]"),
            "in entry infer: plan: record 2 (product) points to const[5], there are 2\n");
  EXPECT_EQ(faults("planned.tcir", "live 1 to 3 slot 1", "live 0 to 3 slot 1"),
            "in entry infer: plan: buffers 'y.partial' and 'z.partial' share slot 1 while both live\n");
  EXPECT_EQ(faults("planned.tcir", "live 0 to 3 slot 0", "live 0 to 1 slot 0"),
            "in entry infer: plan: tap 'y' is gone before the entry ends: its buffer lives to record 1\n"
            "in entry infer: plan: record 2 (product) uses buffer 'y', which does not live then\n");
  EXPECT_EQ(faults("planned.tcir", "live 0 to 3 slot 0", "live 0 to 4 slot 0"),
            "in entry infer: plan: buffer 'y' lives in records 0 to 4, there are 4\n");
  EXPECT_EQ(faults("planned.tcir", "live 0 to 3 slot 0", "live 0 to 3 slot 2"),
            "in entry infer: plan: buffer 'y' has slot 2, there are 2\n");
  EXPECT_EQ(faults("planned.tcir", "    slot 64*ceildiv(12*B*T,64)", "    slot 64*ceildiv(8*B*T,64)"),
            "in entry infer: plan: buffer 'y' needs 12*B*T bytes, more than its slot 0\n");
  EXPECT_EQ(faults("planned.tcir", "    end of z\n", ""),
            "in entry infer: plan: buffer 'y' lives in records 0 to 3, there are 3\n"
            "in entry infer: plan: buffer 'z.partial' lives in records 1 to 3, there are 3\n"
            "in entry infer: plan: a loop does not end\n");
  EXPECT_EQ(faults("planned.tcir", "tasks ceildiv(B*T,14)", "tasks I"),
            "in entry infer: plan: record 0 (product) counts by a loop it is not in\n");
  EXPECT_EQ(faults("planned.tcir", "    slot 64*ceildiv(12*B*T,64)", "    slot 64*ceildiv(12*B*T,64)+64*I"),
            "in entry infer: plan: slot 0 has a size that changes from iteration to iteration: "
            "64*I+64*ceildiv(12*B*T,64)\n");
}

TEST(Verify, TableOfAttributesKnowsOnlyOperations) {
  for (const OpInfo& op : all_ops())
    for (const AttributeRule& rule : attribute_rules(op.kind)) EXPECT_FALSE(rule.key.empty()) << op.text;
  EXPECT_EQ(check_attributes(OpKind::Add, {}), "");
  EXPECT_EQ(check_attributes(OpKind::Add, {{"axis", int64_t{1}}}), "attribute 'axis' is unknown");
}

}  // namespace
}  // namespace tfc::ir
