// Values that [debug] edits lets callers change: what becomes of them, for how long, and that nothing else changes. (That
// outputs and gradients are right with edits set `verify` compares, on the models of descriptions_edits.cpp.)
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "models/descriptions.h"
#include "models/session.h"

namespace tfc::models {
namespace {

const std::string kDecoder = R"(
[model]
kind = "decoder"
d_model = 36
layers = 2
heads = 6
kv_heads = 2
d_ff = 50
vocab = 31
[position]
type = "rope"
[ffn]
activation = "swiglu"
)";

const std::string kPair = R"(
[model]
kind = "encoder-decoder"
d_model = 33
encoder_layers = 2
decoder_layers = 2
heads = 3
d_ff = 40
vocab = 25
max_seq = 64
dropout = 0.2
[norm]
placement = "sandwich"
)";

std::string with_edits(const std::string& description, const std::string& edits, const std::string& more = "") {
  return description + "[debug]\nedits = " + edits + "\n" + more;
}

/// A session with its edits by name.
class Editing : public Session {
 public:
  using Session::Session;
  struct Array {
    std::vector<int64_t> shape;
    std::vector<double> data;
  };

  int32_t number(const std::string& name) const {
    tc_edit edit{};
    edit.size = sizeof edit;
    for (int32_t i = 0; api.edit_info(i, &edit) == TC_OK; ++i) {
      if (edit.name == name) return i;
    }
    ADD_FAILURE() << "no edit is named " << name;
    return -1;
  }
  tc_status try_edit(const std::string& name, int how, const Array& value, const Array* where = nullptr) const {
    const std::vector<float> narrow(value.data.begin(), value.data.end());
    const std::vector<uint8_t> flags =
        where ? std::vector<uint8_t>(where->data.begin(), where->data.end()) : std::vector<uint8_t>();
    const tc_array given = array(value.shape, real_bytes() == 4 ? static_cast<const void*>(narrow.data()) : value.data.data()),
                   places = where ? array(where->shape, flags.data()) : tc_array{};
    return api.set_edit(session, number(name), how, &given, where ? &places : nullptr);
  }
  void replace(const std::string& name, const Array& value) const { check(try_edit(name, TC_EDIT_REPLACE, value)); }
  void replace(const std::string& name, const Array& value, const Array& where) const {
    check(try_edit(name, TC_EDIT_REPLACE, value, &where));
  }
  void add(const std::string& name, const Array& value) const { check(try_edit(name, TC_EDIT_ADD, value)); }
  void clear() const { check(api.clear_edits(session, TC_ALL_EDITS)); }

  /// The only tap's value.
  Array tapped() const {
    tc_array found{};
    found.size = sizeof found;
    check(api.tap(session, 0, 0, &found));
    Array values{{found.shape, found.shape + found.rank}, {}};
    size_t elements = 1;
    for (const int64_t size : values.shape) elements *= static_cast<size_t>(size);
    const auto* bytes = static_cast<const uint8_t*>(found.data);
    values.data = numbers(*this, Bytes(bytes, bytes + elements * static_cast<size_t>(real_bytes())));
    return values;
  }

 private:
  static tc_array array(const std::vector<int64_t>& shape, const void* data) {
    tc_array array{};
    array.size = sizeof array;
    array.data = data;
    array.rank = static_cast<int32_t>(shape.size());
    std::copy(shape.begin(), shape.end(), array.shape);
    return array;
  }
};

Results results_of(const Compiled& compiled) {
  Session session(compiled, with_threads(2));
  const Call call = random_call(session, 3, 20, 13);
  return session.everything(call, call.batch.grad_output);
}

TEST(Edits, NothingChangesUntilOneIsSet) {
  for (const std::string& description : {kDecoder, kPair}) {
    const Results expected = results_of(compile(description));
    // Keys apart from a rotation: of an edited key the bias has a gradient, which is nothing but rounding until then.
    const std::string edits = R"(["*ffn*", "*norm*", "*attn", "*.o", "*emb*", "*sum*"])";
    for (const int level : {0, 1, 2})
      EXPECT_EQ(differences(expected, results_of(compile(with_edits(description, edits), {.optimisation = level}))), "")
          << "-O" << level;
    EXPECT_EQ(differences(expected, results_of(compile(with_edits(description, edits, "[train]\nrecompute = \"all\"\n")))), "");
  }
}

TEST(Edits, AHeadThatIsOffIsOneWhoseOutputIsNotRead) {
  const Compiled compiled = compile(with_edits(kDecoder, "\"layers.*.attn\""), {.precision = ir::DType::F64});
  Editing edited(compiled), cut(compiled);
  for (Editing* session : {&edited, &cut}) session->start_over();
  const Call call = random_call(edited, 3, 9, 0);
  const Bytes untouched = edited.forward(call);
  for (const int64_t head : {0, 2, 5}) {
    Editing::Array where{{36}, std::vector<double>(36)};
    auto* weight = static_cast<double*>(cut.api.parameter(cut.model, "layers.1.attn.o.weight"));
    const std::vector<double> before(weight, weight + 36 * 36);
    for (int64_t i = head * 6; i < head * 6 + 6; ++i) {
      where.data[static_cast<size_t>(i)] = 1;
      for (int64_t row = 0; row < 36; ++row) weight[row * 36 + i] = 0;
    }
    edited.replace("layers.1.attn", {{}, {0}}, where);
    EXPECT_TRUE(edited.forward(call) == cut.forward(call));
    EXPECT_TRUE(edited.forward(call) != untouched);
    EXPECT_EQ(edited.loss(call), cut.loss(call));
    EXPECT_EQ(edited.backward(call), cut.backward(call));
    const auto gradient = [&](const Editing& session) {
      const auto* g = static_cast<const double*>(session.api.gradient(session.model, "layers.0.attn.q.weight"));
      return std::vector<double>(g, g + 36 * 36);
    };
    EXPECT_EQ(gradient(edited), gradient(cut));
    std::copy(before.begin(), before.end(), weight);
  }
  edited.clear();
  EXPECT_TRUE(edited.forward(call) == untouched);
}

TEST(Edits, PatchingWithAnotherInputsActivation) {
  const Compiled compiled = compile(with_edits(kDecoder, "\"layers.1.out\"", "taps = \"layers.1.out\"\n"));
  Editing session(compiled);
  session.start_over();
  const Call clean = random_call(session, 2, 11, 0, 7, false), other = random_call(session, 2, 11, 0, 8, false);
  const Bytes expected = session.forward(clean);
  const Editing::Array inside = session.tapped();
  EXPECT_EQ(inside.shape, (std::vector<int64_t>{2, 11, 36}));
  EXPECT_TRUE(session.forward(other) != expected);
  session.replace("layers.1.out", inside);
  EXPECT_TRUE(session.forward(other) == expected) << "all that follows is the clean run's";
  EXPECT_EQ(session.tapped().data, inside.data) << "a tap shows what was made of its value";
  session.add("layers.1.out", {{1}, {0}});
  EXPECT_TRUE(session.forward(clean) == expected);
}

TEST(Edits, TheSameBitsForAnyThreadCountAndPasses) {
  for (const std::string& description : {kDecoder, kPair}) {
    std::vector<Results> all;
    for (const auto& [level, threads] : {std::pair(1, 1), {1, 3}, {0, 1}, {2, 2}}) {
      const Compiled compiled = compile(with_edits(description, "\"*ffn.act\""), {.optimisation = level});
      Editing session(compiled, with_threads(threads));
      const bool pair = session.is_pair();
      session.add(pair ? "decoder.layers.1.ffn.act" : "layers.1.ffn.act", {{}, {0.25}});
      session.replace(pair ? "encoder.layers.0.ffn.act" : "layers.0.ffn.act", {{1, 1}, {0.5}}, {{}, {1}});
      const Call call = random_call(session, 3, 40, 33);
      all.push_back(session.everything(call, call.batch.grad_output));
    }
    for (size_t i = 1; i < all.size(); ++i) EXPECT_EQ(differences(all[0], all[i]), "") << i;
  }
}

TEST(Edits, DecodingGoesOnWithEditsThatRepeatOverTokens) {
  for (const std::string& description : {kDecoder, kPair}) {
    const std::string of_source = description == kPair ? ", \"*cross.v\"" : "";
    const Compiled compiled = compile(with_edits(description, "[\"*layers.*.ffn.down\", \"*attn.[kv]\"" + of_source + "]"));
    Editing session(compiled);
    session.start_over();
    Call call = random_call(session, 2, 12, 9, 7, false);
    const std::string side = session.is_pair() ? "decoder." : "";
    session.add(side + "layers.0.ffn.down", {{2, 1, 1}, {0.5, -1}});
    session.replace(side + "layers.1.attn.v", {{}, {0.125}});
    if (session.is_pair()) session.add("decoder.layers.0.cross.v", {{2, 1, 1}, {2, -0.25}});
    const Bytes whole = session.forward(call);
    session.reset_cache(call, 20);
    const int64_t row = session.info.out_width * session.real_bytes();
    int64_t begin = 0;
    for (const int64_t count : {5, 1, 6}) {
      const Bytes part = session.decode(call.batch.slice(session.info, begin, count));
      for (int64_t b = 0; b < 2; ++b)
        EXPECT_EQ(0, std::memcmp(part.data() + b * count * row, whole.data() + (b * 12 + begin) * row,
                                 static_cast<size_t>(count * row)));
      begin += count;
    }
  }
}

TEST(Edits, PaddingIsNotEdited) {
  const Compiled compiled = compile(with_edits(kDecoder, "\"layers.*.ffn.down\""));
  Editing session(compiled);
  session.start_over();
  const Call call = random_call(session, 3, 9, 0);
  const ir::Tensor& mask = call.inputs.at("mask");
  Editing::Array value{{3, 9, 1}, {}};
  for (int64_t i = 0; i < 27; ++i) value.data.push_back(mask[i] != 0 ? 0.5 : std::numeric_limits<double>::quiet_NaN());
  session.replace("layers.0.ffn.down", {{1}, {0.5}});
  const Results expected = session.everything(call, call.batch.grad_output, false);
  session.replace("layers.0.ffn.down", value);
  EXPECT_EQ(differences(expected, session.everything(call, call.batch.grad_output, false)), "");
}

TEST(Edits, WhatDoesNotFitChangesNothing) {
  const Compiled compiled = compile(with_edits(kDecoder, "[\"layers.0.attn\", \"layers.0.ffn.down\"]"));
  Editing session(compiled);
  session.start_over();
  const Call call = random_call(session, 2, 9, 0), shorter = random_call(session, 2, 5, 0);
  session.backward(call);
  session.step();  // so that gradients and moments are there before and after
  session.add("layers.0.attn", {{9, 36}, std::vector<double>(9 * 36, 0.5)});
  const Bytes expected = session.forward(call);
  const auto says = [&](tc_status status, const std::string& text) {
    EXPECT_EQ(status, TC_E_ARGUMENT) << text;
    EXPECT_EQ(session.message(), text);
  };
  const Editing::Array half{{}, {0.5}}, three{{3}, {1, 2, 3}}, deep{{1, 1, 1, 1}, {1}}, twos{{2, 1, 36}, std::vector<double>(72, 2)};
  says(session.try_edit("layers.0.attn", TC_EDIT_REPLACE, three), "value has shape [3], which does not fit [*,*,36], that of 'layers.0.attn'");
  says(session.try_edit("layers.0.attn", TC_EDIT_REPLACE, deep), "value has 4 dimensions, but 'layers.0.attn' has 3");
  says(session.try_edit("layers.0.attn", TC_EDIT_ADD, half, &three), "where has shape [3], which does not fit [*,*,36], that of 'layers.0.attn'");
  says(session.try_edit("layers.0.attn", TC_EDIT_ADD, half, &twos), "element 0 of where is 2, expected 0 or 1");
  says(session.try_edit("layers.0.attn", 3, half), "how is 3, expected TC_EDIT_REPLACE or TC_EDIT_ADD");
  says(session.api.set_edit(session.session, 0, TC_EDIT_ADD, nullptr, nullptr), "value is NULL");
  says(session.api.set_edit(session.session, 2, TC_EDIT_ADD, nullptr, nullptr), "the edit is number 2, but model has 2");
  says(session.api.clear_edits(session.session, 2), "the edit is number 2, but model has 2");
  EXPECT_TRUE(session.forward(call) == expected) << "the edit that was set is still there";

  const Results before = session.state();
  double mean = 0;
  const tc_adamw settings = usual_settings();
  const std::string misfit = "value of the edit of 'layers.0.attn' has shape [9,36], which does not fit [2,5,36], the shape in this call";
  says(session.api.loss(session.session, &shorter.get(), &mean), misfit);
  says(session.api.train_step(session.session, &shorter.get(), &settings, &mean), misfit);
  EXPECT_EQ(differences(before, session.state()), "");
  EXPECT_TRUE(session.forward(call) == expected);

  tc_sampling sampling{};
  sampling.size = sizeof sampling;
  sampling.max_new = 2;
  tc_batch prompt = shorter.get();
  prompt.targets = nullptr;
  prompt.mask = nullptr;
  const auto nothing = [](void*, int64_t, int32_t) { return 0; };
  EXPECT_EQ(session.api.generate(session.session, &prompt, &sampling, nothing, nullptr), TC_E_ARGUMENT);
  EXPECT_NE(session.message().find("does not fit [2,1,36]"), std::string::npos) << session.message();
  session.check(session.api.clear_edits(session.session, 0));
  EXPECT_EQ(session.api.generate(session.session, &prompt, &sampling, nothing, nullptr), TC_OK) << session.message();
}

TEST(Edits, BelongToTheirSession) {
  const Compiled compiled = compile(with_edits(kDecoder, "\"layers.0.attn\""));
  Editing session(compiled);
  session.start_over();
  const Call call = random_call(session, 2, 9, 0);
  const Bytes plain = session.forward(call);
  session.replace("layers.0.attn", {{}, {0}});
  const Bytes edited = session.forward(call);
  tc_session* other = nullptr;
  session.check(session.api.session_create(session.model, nullptr, &other));
  std::swap(session.session, other);
  EXPECT_TRUE(session.forward(call) == plain);
  std::swap(session.session, other);
  EXPECT_TRUE(session.forward(call) == edited);
  session.api.session_destroy(other);

  tc_edit info{};
  info.size = sizeof info;
  EXPECT_EQ(session.api.edit_info(0, &info), TC_OK);
  EXPECT_EQ(info.rank, 3);
  EXPECT_EQ(info.shape[0], 0);
  EXPECT_EQ(info.shape[2], 36);
  EXPECT_EQ(info.entries & (1u << TC_ENTRY_DECODE), 1u << TC_ENTRY_DECODE);
  EXPECT_EQ(info.entries & (1u << TC_ENTRY_STEP), 0u);
  EXPECT_EQ(session.api.edit_info(1, &info), TC_E_ARGUMENT);
}

}  // namespace
}  // namespace tfc::models
