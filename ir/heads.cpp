#include "ir/heads.h"

#include <algorithm>

namespace tfc::ir {
namespace {

HeadFacts only_head(const Attributes& facts) {
  HeadFacts head;
  head.type = facts.text("head", "none");
  head.loss = facts.text("loss", head.type == "none" ? "none" : "cross_entropy");
  head.per_token = facts.flag("per_token", head.type != "classifier");
  head.out = facts.integer("out_width", 0);
  head.ignore_index = facts.integer("ignore_index", -100);
  return head;
}

}  // namespace

std::vector<HeadFacts> heads_of(const Attributes& facts) {
  const int64_t count = facts.integer("heads", 0);
  if (count == 0) return {only_head(facts)};
  std::vector<HeadFacts> heads;
  for (int64_t i = 0; i < count; ++i) {
    const std::string prefix = "head." + std::to_string(i) + ".";
    heads.push_back({facts.text(prefix + "name"), facts.text(prefix + "type"), facts.text(prefix + "loss"),
                     facts.flag(prefix + "per_token"), facts.integer(prefix + "out"),
                     facts.integer(prefix + "ignore_index"), facts.real(prefix + "weight"),
                     facts.flag(prefix + "source", false)});
  }
  return heads;
}

void set_heads(Attributes& facts, const std::vector<HeadFacts>& heads) {
  const HeadFacts& main = heads[static_cast<size_t>(std::max(0, main_head(heads)))];
  facts.set("head", main.type);
  facts.set("out_width", main.out);
  facts.set("ignore_index", main.ignore_index);
  if (heads.size() == 1 && main.name.empty()) {
    facts.set("loss", main.loss);
    facts.set("per_token", main.per_token);
    return;
  }
  facts.set("heads", static_cast<int64_t>(heads.size()));
  for (size_t i = 0; i < heads.size(); ++i) {
    const std::string prefix = "head." + std::to_string(i) + ".";
    facts.set(prefix + "name", heads[i].name);
    facts.set(prefix + "type", heads[i].type);
    facts.set(prefix + "loss", heads[i].loss);
    facts.set(prefix + "per_token", heads[i].per_token);
    facts.set(prefix + "out", heads[i].out);
    facts.set(prefix + "ignore_index", heads[i].ignore_index);
    facts.set(prefix + "weight", heads[i].weight);
    if (heads[i].source) facts.set(prefix + "source", true);
  }
}

int main_head(const std::vector<HeadFacts>& heads) {
  if (heads.size() == 1) return 0;
  const auto is_lm = [](const HeadFacts& head) { return head.type == "lm" && !head.source; };
  if (std::count_if(heads.begin(), heads.end(), is_lm) != 1) return -1;
  return static_cast<int>(std::find_if(heads.begin(), heads.end(), is_lm) - heads.begin());
}

}  // namespace tfc::ir
