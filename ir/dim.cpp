#include "ir/dim.h"

#include <algorithm>
#include <utility>

#include "ir/check.h"

namespace tfc::ir {
namespace {

// Sizes of real models stay far below 2^63; text made up by hand need not, and must not be undefined
// behaviour.
int64_t wrapping_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t wrapping_mul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
int64_t ceil_quotient(int64_t a, int64_t n) { return a / n + (a % n > 0 ? 1 : 0); }

void emit(std::vector<int64_t>& code, DimCode op) { code.push_back(static_cast<int64_t>(op)); }

}  // namespace

char symbol_letter(Symbol symbol) { return "BTSCI"[static_cast<int>(symbol)]; }

Dim::Dim(int64_t constant) : constant_(constant) {}

Dim::Dim(Symbol symbol) {
  Factor factor;
  factor.symbol = symbol;
  *this = of_factor(std::move(factor));
}

Dim Dim::of_factor(Factor factor) {
  Terms terms;
  terms.emplace(Product{std::move(factor)}, 1);
  return of_terms(std::move(terms), 0);
}

Dim Dim::of_terms(Terms terms, int64_t constant) {
  Dim dim(constant);
  if (!terms.empty()) dim.terms_ = std::make_shared<const Terms>(std::move(terms));
  return dim;
}

std::optional<int64_t> Dim::constant() const {
  if (terms_) return std::nullopt;
  return constant_;
}

bool Dim::is_zero() const { return !terms_ && constant_ == 0; }

bool Dim::mentions(Symbol symbol) const {
  if (!terms_) return false;
  for (const auto& [product, coefficient] : *terms_)
    for (const Factor& factor : product) {
      if (factor.kind == Factor::Kind::Symbol ? factor.symbol == symbol : factor.a->mentions(symbol))
        return true;
      if (factor.b && factor.b->mentions(symbol)) return true;
    }
  return false;
}

static int64_t factor_at(const Dim::Factor& factor, const Point& point) {
  switch (factor.kind) {
    case Dim::Factor::Kind::Symbol:
      return point[factor.symbol];
    case Dim::Factor::Kind::CeilDiv:
      return ceil_quotient(factor.a->at(point), factor.divisor);
    case Dim::Factor::Kind::Min:
      return std::min(factor.a->at(point), factor.b->at(point));
    case Dim::Factor::Kind::Max:
      return std::max(factor.a->at(point), factor.b->at(point));
  }
  compiler_fault("a dimension has a factor of no known kind");
}

int64_t Dim::at(const Point& point) const {
  int64_t sum = constant_;
  if (!terms_) return sum;
  for (const auto& [product, coefficient] : *terms_) {
    int64_t value = coefficient;
    for (const Factor& factor : product) value = wrapping_mul(value, factor_at(factor, point));
    sum = wrapping_add(sum, value);
  }
  return sum;
}

static std::string factor_text(const Dim::Factor& factor) {
  switch (factor.kind) {
    case Dim::Factor::Kind::Symbol:
      return std::string(1, symbol_letter(factor.symbol));
    case Dim::Factor::Kind::CeilDiv:
      return "ceildiv(" + factor.a->text() + "," + std::to_string(factor.divisor) + ")";
    case Dim::Factor::Kind::Min:
      return "min(" + factor.a->text() + "," + factor.b->text() + ")";
    case Dim::Factor::Kind::Max:
      return "max(" + factor.a->text() + "," + factor.b->text() + ")";
  }
  compiler_fault("a dimension has a factor of no known kind");
}

std::string Dim::text() const {
  if (!terms_) return std::to_string(constant_);
  std::string text;
  for (const auto& [product, coefficient] : *terms_) {
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
  if (constant_ > 0) text += '+';
  if (constant_ != 0) text += std::to_string(constant_);
  return text;
}

void Dim::encode_body(std::vector<int64_t>& code) const {
  bool first = true;
  const auto summand_done = [&] {
    if (!first) emit(code, DimCode::Add);
    first = false;
  };
  if (terms_) {
    for (const auto& [product, coefficient] : *terms_) {
      int values = 0;
      const auto value_done = [&] {
        if (++values > 1) emit(code, DimCode::Mul);
      };
      if (coefficient != 1) {
        emit(code, DimCode::Const);
        code.push_back(coefficient);
        value_done();
      }
      for (const Factor& factor : product) {
        if (factor.kind == Factor::Kind::Symbol) {
          emit(code, DimCode::Symbol);
          code.push_back(static_cast<int64_t>(factor.symbol));
        } else {
          factor.a->encode_body(code);
          if (factor.b) factor.b->encode_body(code);
          emit(code, factor.kind == Factor::Kind::CeilDiv ? DimCode::CeilDiv
                     : factor.kind == Factor::Kind::Min   ? DimCode::Min
                                                          : DimCode::Max);
          if (factor.kind == Factor::Kind::CeilDiv) code.push_back(factor.divisor);
        }
        value_done();
      }
      summand_done();
    }
  }
  if (constant_ != 0 || !terms_) {
    emit(code, DimCode::Const);
    code.push_back(constant_);
    summand_done();
  }
}

void Dim::encode(std::vector<int64_t>& code) const {
  encode_body(code);
  emit(code, DimCode::End);
}

Dim operator+(const Dim& a, const Dim& b) {
  const int64_t constant = wrapping_add(a.constant_, b.constant_);
  if (!a.terms_ || !b.terms_) {
    Dim sum = a.terms_ ? a : b;
    sum.constant_ = constant;
    return sum;
  }
  Dim::Terms terms = *a.terms_;
  for (const auto& [product, coefficient] : *b.terms_) {
    const auto [at, fresh] = terms.emplace(product, coefficient);
    if (fresh) continue;
    at->second = wrapping_add(at->second, coefficient);
    if (at->second == 0) terms.erase(at);
  }
  return Dim::of_terms(std::move(terms), constant);
}

Dim operator-(const Dim& a, const Dim& b) { return a + Dim(-1) * b; }

Dim operator*(const Dim& a, const Dim& b) {
  if (!a.terms_ && !b.terms_) return Dim(wrapping_mul(a.constant_, b.constant_));
  if (a.is_zero() || b.is_zero()) return Dim();
  Dim::Terms terms;
  const auto add = [&](Dim::Product product, int64_t coefficient) {
    if (coefficient == 0) return;
    const auto [at, fresh] = terms.emplace(std::move(product), coefficient);
    if (fresh) return;
    at->second = wrapping_add(at->second, coefficient);
    if (at->second == 0) terms.erase(at);
  };
  if (a.terms_)
    for (const auto& [product, coefficient] : *a.terms_) add(product, wrapping_mul(coefficient, b.constant_));
  if (b.terms_)
    for (const auto& [product, coefficient] : *b.terms_) add(product, wrapping_mul(coefficient, a.constant_));
  if (a.terms_ && b.terms_)
    for (const auto& [left, m] : *a.terms_)
      for (const auto& [right, n] : *b.terms_) {
        Dim::Product product;
        product.reserve(left.size() + right.size());
        std::merge(left.begin(), left.end(), right.begin(), right.end(), std::back_inserter(product));
        add(std::move(product), wrapping_mul(m, n));
      }
  return Dim::of_terms(std::move(terms), wrapping_mul(a.constant_, b.constant_));
}

bool operator==(const Dim& a, const Dim& b) {
  if (a.constant_ != b.constant_) return false;
  if (a.terms_ == b.terms_) return true;
  return a.terms_ && b.terms_ && *a.terms_ == *b.terms_;
}

bool operator<(const Dim& a, const Dim& b) {
  if (a.terms_ != b.terms_) {
    if (!a.terms_ || !b.terms_) return !a.terms_;
    if (*a.terms_ < *b.terms_) return true;
    if (*b.terms_ < *a.terms_) return false;
  }
  return a.constant_ < b.constant_;
}

bool operator==(const Dim::Factor& a, const Dim::Factor& b) { return !(a < b) && !(b < a); }

bool operator<(const Dim::Factor& a, const Dim::Factor& b) {
  if (a.kind != b.kind) return a.kind < b.kind;
  if (a.kind == Dim::Factor::Kind::Symbol) return a.symbol < b.symbol;
  if (a.divisor != b.divisor) return a.divisor < b.divisor;
  if (*a.a < *b.a) return true;
  if (*b.a < *a.a) return false;
  return a.b && *a.b < *b.b;
}

Dim ceildiv(const Dim& a, int64_t n) {
  TFC_CHECK(n > 0, "ceildiv by " + std::to_string(n) + ", expected a positive divisor");
  if (n == 1) return a;
  if (!a.terms_) return Dim(ceil_quotient(a.constant_, n));
  const bool exact =
      a.constant_ % n == 0 &&
      std::all_of(a.terms_->begin(), a.terms_->end(), [n](const auto& term) { return term.second % n == 0; });
  if (exact) {
    Dim::Terms terms = *a.terms_;
    for (auto& [product, coefficient] : terms) coefficient /= n;
    return Dim::of_terms(std::move(terms), a.constant_ / n);
  }
  Dim::Factor factor;
  factor.kind = Dim::Factor::Kind::CeilDiv;
  factor.divisor = n;
  factor.a = std::make_shared<const Dim>(a);
  return Dim::of_factor(std::move(factor));
}

// ---- min and max ----

/// No symbol is ever negative, so a sum of products of symbols with no negative coefficient is not: the one
/// inequality that is seen here. It keeps the sizes of slots short: max(512*B*T, 1536*B*T) is 1536*B*T.
static bool surely_not_negative(const Dim::Factor& factor) {
  switch (factor.kind) {
    case Dim::Factor::Kind::Symbol:
      return true;
    case Dim::Factor::Kind::CeilDiv:
      return factor.a->never_negative();
    case Dim::Factor::Kind::Min:
      return factor.a->never_negative() && factor.b->never_negative();
    case Dim::Factor::Kind::Max:
      return factor.a->never_negative() || factor.b->never_negative();
  }
  return false;
}

bool Dim::never_negative() const {
  if (constant_ < 0) return false;
  if (!terms_) return true;
  return std::all_of(terms_->begin(), terms_->end(), [](const auto& term) {
    return term.second > 0 && std::all_of(term.first.begin(), term.first.end(), surely_not_negative);
  });
}

/// The operands of nested calls of one kind: max(a, max(b, c)) -> a, b, c.
void Dim::collect(bool greatest, std::vector<Dim>& operands) const {
  const bool one_factor = constant_ == 0 && terms_ && terms_->size() == 1 && terms_->begin()->second == 1 &&
                          terms_->begin()->first.size() == 1;
  if (one_factor && terms_->begin()->first[0].kind == (greatest ? Factor::Kind::Max : Factor::Kind::Min)) {
    terms_->begin()->first[0].a->collect(greatest, operands);
    terms_->begin()->first[0].b->collect(greatest, operands);
  } else {
    operands.push_back(*this);
  }
}

/// One form for every order and nesting of the same operands, without those that another one surely beats.
Dim Dim::extremum(bool greatest, const Dim& a, const Dim& b) {
  std::vector<Dim> all, kept;
  a.collect(greatest, all);
  b.collect(greatest, all);
  for (const Dim& candidate : all) {
    const auto beats = [greatest](const Dim& winner, const Dim& loser) {
      return (greatest ? winner - loser : loser - winner).never_negative();
    };
    if (std::any_of(kept.begin(), kept.end(), [&](const Dim& other) { return beats(other, candidate); }))
      continue;
    std::erase_if(kept, [&](const Dim& other) { return beats(candidate, other); });
    kept.push_back(candidate);
  }
  std::sort(kept.begin(), kept.end());
  Dim result = kept.back();
  for (size_t i = kept.size() - 1; i-- > 0;) {
    Factor factor;
    factor.kind = greatest ? Factor::Kind::Max : Factor::Kind::Min;
    factor.a = std::make_shared<const Dim>(kept[i]);
    factor.b = std::make_shared<const Dim>(std::move(result));
    result = of_factor(std::move(factor));
  }
  return result;
}

Dim min(const Dim& a, const Dim& b) { return Dim::extremum(false, a, b); }
Dim max(const Dim& a, const Dim& b) { return Dim::extremum(true, a, b); }

}  // namespace tfc::ir
