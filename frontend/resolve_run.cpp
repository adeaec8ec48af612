#include "frontend/resolve_run.h"

#include <algorithm>

#include "frontend/scope.h"

namespace tfc::frontend {
namespace {

constexpr int64_t kByteValues = 256;
constexpr int64_t kReverseSpecials = 2;  // padding and begin-of-sequence come before the symbols to reverse

void read_betas(const Scope& run, RunSettings& settings, ir::Diagnostics& diagnostics) {
  const Tree* betas = run.find("betas");
  if (!betas) return;
  if (betas->elements.size() != 2) {
    diagnostics.error(betas->place, "betas are two numbers, found " + std::to_string(betas->elements.size()));
    return;
  }
  settings.beta1 = betas->elements[0].real;
  settings.beta2 = betas->elements[1].real;
  for (const Tree& beta : betas->elements)
    if (beta.real >= 1.0) diagnostics.error(beta.place, "a beta is at least 0 and below 1");
}

void check_text(const Scope& run, const Description& d, ir::Diagnostics& diagnostics) {
  const ir::Place place = run.place(run.has("task") ? "task" : "data");
  if (!run.has("data") && !run.was_refused("data"))
    diagnostics.error(place, "the task \"text\" needs data, the path of a file");
  if (d.model.kind != "decoder" || !d.has_only_head("lm"))
    diagnostics.error(place, "the task \"text\" needs a decoder with a language-model head");
  else if (d.model.vocab < kByteValues)
    diagnostics.error(place, "the task \"text\" takes bytes as tokens and needs vocab = 256 or more, found " +
                                 std::to_string(d.model.vocab));
}

void check_reverse(const Scope& run, const Description& d, const RunSettings& settings,
                   ir::Diagnostics& diagnostics) {
  const ir::Place place = run.place("task");
  if (!d.model.has_encoder_input || !d.has_only_head("lm") || d.model.src_vocab != d.model.vocab ||
      d.model.vocab <= kReverseSpecials) {
    diagnostics.error(place,
                      "the task \"reverse\" needs an encoder-decoder with a language-model head and one "
                      "vocabulary of 3 or more");
  } else if (d.model.max_seq > 0 && settings.length + 1 > d.model.max_seq) {
    diagnostics.error(run.place("length"),
                      "length + 1 = " + std::to_string(settings.length + 1) +
                          " is longer than max_seq = " + std::to_string(d.model.max_seq));
  }
}

void read_numbers(const Scope& run, RunSettings& s) {
  const std::pair<const char*, int64_t*> counts[] = {{"steps", &s.steps},       {"epochs", &s.epochs},
                                                     {"examples", &s.examples}, {"length", &s.length},
                                                     {"batch", &s.batch},       {"seq", &s.seq},
                                                     {"warmup", &s.warmup},     {"seed", &s.seed},
                                                     {"report", &s.report},     {"accumulate", &s.accumulate},
                                                     {"threads", &s.threads},   {"sample", &s.sample},
                                                     {"top_k", &s.top_k}};
  for (const auto& [key, value] : counts) *value = run.integer(key, *value);
  const std::pair<const char*, double*> reals[] = {{"lr", &s.lr},
                                                   {"min_lr", &s.min_lr},
                                                   {"eps", &s.eps},
                                                   {"weight_decay", &s.weight_decay},
                                                   {"clip", &s.clip},
                                                   {"validation", &s.validation},
                                                   {"temperature", &s.temperature}};
  for (const auto& [key, value] : reals) *value = run.real(key, *value);
}

}  // namespace

RunSettings resolve_run(const Tree& root, const Description& d, ir::Diagnostics& diagnostics) {
  const Scope run{root.valid("run")};
  RunSettings s;
  s.written = root.valid("run") != nullptr;
  s.data = run.text("data", "");
  s.task = run.text("task", s.data.empty() ? "reverse" : "text");
  s.schedule = run.text("schedule", s.schedule);
  s.prompt = run.text("prompt", s.prompt);
  s.seq = d.model.max_seq > 0 ? std::min<int64_t>(d.model.max_seq, 256) : 256;
  read_numbers(run, s);
  read_betas(run, s, diagnostics);
  if (!s.written) return s;
  if (run.has("min_lr") && s.min_lr > s.lr) diagnostics.error(run.place("min_lr"), "min_lr is above lr");
  if (d.model.max_seq > 0 && s.seq > d.model.max_seq)
    diagnostics.error(run.place("seq"), "seq = " + std::to_string(s.seq) +
                                            " is longer than max_seq = " + std::to_string(d.model.max_seq));
  const bool model_known = !d.model.kind.empty() && d.model.d_model > 0 && !run.was_refused("task");
  if (model_known && s.task == "text") check_text(run, d, diagnostics);
  if (model_known && s.task == "reverse") check_reverse(run, d, s, diagnostics);
  return s;
}

}  // namespace tfc::frontend
