#include "frontend/resolve_train.h"

#include <cmath>
#include <cstdlib>

namespace tfc::frontend {
namespace {

struct Unit {
  std::string_view name;
  double bytes;
};
constexpr Unit kUnits[] = {{"B", 1},           {"kB", 1e3},           {"MB", 1e6},
                           {"GB", 1e9},        {"TB", 1e12},          {"KiB", 1024.0},
                           {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0}};
constexpr double kMostBytes = 1e15;

/// "2GiB", "1.5 GB"; 0 where the text is nothing of the kind.
int64_t bytes_of(const std::string& text) {
  char* end = nullptr;
  const bool digit = !text.empty() && text[0] >= '0' && text[0] <= '9';
  const double number = digit ? std::strtod(text.c_str(), &end) : 0;
  if (!digit || !(number > 0)) return 0;
  while (*end == ' ') ++end;
  for (const Unit& unit : kUnits) {
    const double bytes = std::floor(number * unit.bytes);
    if (unit.name == end && bytes >= 1 && bytes <= kMostBytes) return static_cast<int64_t>(bytes);
  }
  return 0;
}

void resolve_budget(const Tree& budget, RecomputeSettings& recompute, ir::Diagnostics& diagnostics) {
  const Scope scope{&budget};
  for (const char* key : {"bytes", "batch", "seq"})
    if (!budget.find(key))
      diagnostics.error(budget.place, "budget needs the key '" + std::string(key) +
                                          "', as in { bytes = \"2GiB\", batch = 4, seq = 256 }");
  recompute.batch = scope.integer("batch", 0);
  recompute.seq = scope.integer("seq", 0);
  if (!scope.has("bytes")) return;
  const std::string text = scope.text("bytes", "");
  recompute.bytes = bytes_of(text);
  if (recompute.bytes == 0)
    diagnostics.error(scope.place("bytes"),
                      "'" + text + "' is no amount of memory, expected a number and B, kB, MB, " +
                          "GB, TB, KiB, MiB, GiB or TiB, such as \"2GiB\"");
}

/// A string or a list of them; null: none.
std::vector<NamePattern> patterns_of(const Tree* list) {
  std::vector<NamePattern> patterns;
  if (!list) return patterns;
  if (list->kind == Tree::Kind::Text) patterns.push_back({list->text, list->place});
  for (const Tree& element : list->elements) patterns.push_back({element.text, element.place});
  return patterns;
}

}  // namespace

std::vector<NamePattern> resolve_patterns(const Scope& table, std::string_view key) {
  return patterns_of(table.find(key));
}

LoraSettings resolve_lora(const Scope& train, ir::Diagnostics& diagnostics) {
  LoraSettings lora;
  const Tree* table = train.find("lora");
  if (!table) return lora;
  const Scope scope{table};
  lora.place = table->key;
  if (!table->find("rank"))
    diagnostics.error(table->place,
                      "lora needs the key 'rank', as in { rank = 8, targets = [\"q\", \"v\"] }");
  lora.rank = scope.integer("rank", 0);
  lora.alpha = scope.real("alpha", static_cast<double>(lora.rank));
  lora.targets = patterns_of(scope.find("targets"));
  if (!scope.has("targets")) lora.targets = {{"q", table->key}, {"v", table->key}};
  if (lora.targets.empty())
    diagnostics.error(scope.place("targets"), "lora has no targets: nothing would be trained");
  return lora;
}

RecomputeSettings resolve_recompute(const Scope& train, ir::Diagnostics& diagnostics) {
  RecomputeSettings recompute;
  recompute.mode = train.text("recompute", "none");
  if (recompute.mode != "none") recompute.place = train.place("recompute");
  const Tree* budget = train.find("budget");
  if (recompute.mode != "auto") {
    if (budget)
      diagnostics.warning("unused-key", budget->key,
                          "'budget' has no effect: recompute is \"" + recompute.mode + "\"");
  } else if (budget) {
    recompute.place = budget->key;
    resolve_budget(*budget, recompute, diagnostics);
  } else if (!train.was_refused("budget")) {
    diagnostics.error(recompute.place,
                      "recompute = \"auto\" needs a budget = { bytes = \"2GiB\", batch = 4, seq = 256 }");
  }
  return recompute;
}

}  // namespace tfc::frontend
