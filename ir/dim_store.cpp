#include "ir/dim_store.h"

#include "ir/check.h"

namespace tfc::ir {
namespace {

size_t mixed(size_t hash, uint64_t value) { return (hash ^ value) * 0x9e3779b97f4a7c15u + (hash >> 29); }

}  // namespace

size_t Dim::hash() const {
  return mixed(static_cast<size_t>(constant_), reinterpret_cast<uintptr_t>(terms_) >> 4);
}

size_t Dim::Store::CallHash::operator()(const Call& call) const {
  return mixed(mixed(call.a.hash(), call.b.hash()), static_cast<uint64_t>(call.operation));
}

size_t Dim::Store::TermsHash::operator()(const Terms* terms) const {
  size_t hash = terms->list.size();
  for (const Term& term : terms->list) {
    hash = mixed(hash, static_cast<uint64_t>(term.coefficient));
    for (const Factor& factor : term.product) {
      hash = mixed(hash, 8 * static_cast<uint64_t>(factor.symbol) + static_cast<uint64_t>(factor.kind));
      if (factor.kind == Factor::Kind::Symbol) continue;
      hash = mixed(hash, static_cast<uint64_t>(factor.divisor));
      hash = mixed(mixed(hash, factor.a.hash()), factor.b.hash());
    }
  }
  return hash;
}

Dim::Store& Dim::Store::get() {
  static Store& store = *new Store;  // never freed: Dims of any lifetime point into it
  return store;
}

const Dim::Terms* Dim::Store::keep(std::vector<Term> list) {
  const std::lock_guard lock(mutex_);
  Terms terms{std::move(list), ""};
  if (const auto known = terms_.find(&terms); known != terms_.end()) return *known;
  terms.text = text_of(terms.list);
  return *terms_.insert(new Terms(std::move(terms))).first;
}

Dim Dim::Store::remember(char operation, const Dim& a, const Dim& b, Dim (*compute)(const Dim&, const Dim&)) {
  const Call call{a, b, operation};
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = results_.find(call); known != results_.end()) return known->second;
  }
  const Dim result = compute(a, b);  // which asks for others
  const std::lock_guard lock(mutex_);
  return results_.emplace(call, result).first->second;
}

// ---- text ----

static std::string factor_text(const Dim::Factor& factor) {
  switch (factor.kind) {
    case Dim::Factor::Kind::Symbol:
      return std::string(1, symbol_letter(factor.symbol));
    case Dim::Factor::Kind::CeilDiv:
      return "ceildiv(" + factor.a.text() + "," + std::to_string(factor.divisor) + ")";
    case Dim::Factor::Kind::Min:
      return "min(" + factor.a.text() + "," + factor.b.text() + ")";
    case Dim::Factor::Kind::Max:
      return "max(" + factor.a.text() + "," + factor.b.text() + ")";
  }
  compiler_fault("a dimension has a factor of no known kind");
}

std::string Dim::Store::text_of(const std::vector<Term>& list) {
  std::string text;
  for (const auto& [product, coefficient] : list) {
    if (coefficient >= 0 && !text.empty()) text += '+';
    bool first = true;
    if (coefficient == -1) {
      text += '-';
    } else if (coefficient != 1) {
      text += std::to_string(coefficient);
      first = false;
    }
    for (const Factor& factor : product) {
      if (!first) text += '*';
      first = false;
      text += factor_text(factor);
    }
  }
  return text;
}

}  // namespace tfc::ir
