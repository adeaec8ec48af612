#include "ir/dim.h"

#include <algorithm>
#include <utility>

#include "ir/check.h"
#include "ir/dim_store.h"

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

Dim::Dim(Symbol symbol) {
  Factor factor;
  factor.symbol = symbol;
  *this = of_factor(std::move(factor));
}

Dim Dim::of_factor(Factor factor) { return of_terms({{{std::move(factor)}, 1}}, 0); }

/// Of terms in any order, products that occur twice or with the coefficient 0.
Dim Dim::of_terms(std::vector<Term> list, int64_t constant) {
  std::stable_sort(list.begin(), list.end(),
                   [](const Term& a, const Term& b) { return a.product < b.product; });
  std::vector<Term> canonical;
  for (Term& term : list) {
    if (canonical.empty() || canonical.back().product != term.product) {
      canonical.push_back(std::move(term));
    } else {
      canonical.back().coefficient = wrapping_add(canonical.back().coefficient, term.coefficient);
    }
  }
  std::erase_if(canonical, [](const Term& term) { return term.coefficient == 0; });
  Dim dim(constant);
  if (!canonical.empty()) dim.terms_ = Store::get().keep(std::move(canonical));
  return dim;
}

std::optional<int64_t> Dim::constant() const {
  if (terms_) return std::nullopt;
  return constant_;
}

bool Dim::mentions(Symbol symbol) const {
  if (!terms_) return false;
  for (const auto& [product, coefficient] : terms_->list)
    for (const Factor& factor : product) {
      if (factor.kind == Factor::Kind::Symbol ? factor.symbol == symbol : factor.a.mentions(symbol))
        return true;
      if (factor.b.mentions(symbol)) return true;
    }
  return false;
}

static int64_t factor_at(const Dim::Factor& factor, const Point& point) {
  switch (factor.kind) {
    case Dim::Factor::Kind::Symbol:
      return point[factor.symbol];
    case Dim::Factor::Kind::CeilDiv:
      return ceil_quotient(factor.a.at(point), factor.divisor);
    case Dim::Factor::Kind::Min:
      return std::min(factor.a.at(point), factor.b.at(point));
    case Dim::Factor::Kind::Max:
      return std::max(factor.a.at(point), factor.b.at(point));
  }
  compiler_fault("a dimension has a factor of no known kind");
}

int64_t Dim::at(const Point& point) const {
  int64_t sum = constant_;
  if (!terms_) return sum;
  for (const auto& [product, coefficient] : terms_->list) {
    int64_t value = coefficient;
    for (const Factor& factor : product) value = wrapping_mul(value, factor_at(factor, point));
    sum = wrapping_add(sum, value);
  }
  return sum;
}

void Dim::append_text(std::string& to) const {
  if (terms_) to += terms_->text;
  if (terms_ && constant_ > 0) to += '+';
  if (!terms_ || constant_ != 0) to += std::to_string(constant_);
}

std::string Dim::text() const {
  std::string text;
  append_text(text);
  return text;
}

void Dim::encode_body(std::vector<int64_t>& code) const {
  bool first = true;
  const auto summand_done = [&] {
    if (!first) emit(code, DimCode::Add);
    first = false;
  };
  if (terms_) {
    for (const auto& [product, coefficient] : terms_->list) {
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
          factor.a.encode_body(code);
          if (factor.kind != Factor::Kind::CeilDiv) factor.b.encode_body(code);
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

// ---- arithmetic ----

Dim Dim::sum_of(const Dim& a, const Dim& b) {
  std::vector<Term> terms = a.terms_->list;
  terms.insert(terms.end(), b.terms_->list.begin(), b.terms_->list.end());
  return of_terms(std::move(terms), wrapping_add(a.constant_, b.constant_));
}

Dim operator+(const Dim& a, const Dim& b) {
  if (a.terms_ && b.terms_) return Dim::Store::get().remember('+', a, b, Dim::sum_of);
  Dim sum = a.terms_ ? a : b;
  sum.constant_ = wrapping_add(a.constant_, b.constant_);
  return sum;
}

Dim operator-(const Dim& a, const Dim& b) { return a + Dim(-1) * b; }

Dim Dim::product_of(const Dim& a, const Dim& b) {
  std::vector<Term> terms;
  const auto scale = [&](const Dim& dim, int64_t factor) {
    if (!dim.terms_) return;
    for (const auto& [product, coefficient] : dim.terms_->list)
      terms.push_back({product, wrapping_mul(coefficient, factor)});
  };
  scale(a, b.constant_);
  scale(b, a.constant_);
  if (a.terms_ && b.terms_)
    for (const auto& [left, m] : a.terms_->list)
      for (const auto& [right, n] : b.terms_->list) {
        Product product;
        product.reserve(left.size() + right.size());
        std::merge(left.begin(), left.end(), right.begin(), right.end(), std::back_inserter(product));
        terms.push_back({std::move(product), wrapping_mul(m, n)});
      }
  return of_terms(std::move(terms), wrapping_mul(a.constant_, b.constant_));
}

Dim operator*(const Dim& a, const Dim& b) {
  if (!a.terms_ && !b.terms_) return Dim(wrapping_mul(a.constant_, b.constant_));
  if (a.is_zero() || b.is_zero()) return Dim();
  if (a == Dim(1)) return b;
  if (b == Dim(1)) return a;
  return Dim::Store::get().remember('*', a, b, Dim::product_of);
}

bool operator<(const Dim& a, const Dim& b) {
  if (a.terms_ != b.terms_) {
    if (!a.terms_ || !b.terms_) return !a.terms_;
    return std::lexicographical_compare(
        a.terms_->list.begin(), a.terms_->list.end(), b.terms_->list.begin(), b.terms_->list.end(),
        [](const Dim::Term& left, const Dim::Term& right) {
          if (left.product < right.product) return true;
          return !(right.product < left.product) && left.coefficient < right.coefficient;
        });
  }
  return a.constant_ < b.constant_;
}

bool operator<(const Dim::Factor& a, const Dim::Factor& b) {
  if (a.kind != b.kind) return a.kind < b.kind;
  if (a.kind == Dim::Factor::Kind::Symbol) return a.symbol < b.symbol;
  if (a.divisor != b.divisor) return a.divisor < b.divisor;
  if (a.a < b.a) return true;
  if (b.a < a.a) return false;
  return a.b < b.b;
}

Dim ceildiv(const Dim& a, int64_t n) {
  TFC_CHECK(n > 0, "ceildiv by " + std::to_string(n) + ", expected a positive divisor");
  if (n == 1) return a;
  if (!a.terms_) return Dim(ceil_quotient(a.constant_, n));
  std::vector<Dim::Term> quotients = a.terms_->list;
  bool exact = a.constant_ % n == 0;
  for (auto& [product, coefficient] : quotients) {
    exact = exact && coefficient % n == 0;
    coefficient /= n;
  }
  if (exact) return Dim::of_terms(std::move(quotients), a.constant_ / n);
  Dim::Factor factor;
  factor.kind = Dim::Factor::Kind::CeilDiv;
  factor.divisor = n;
  factor.a = a;
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
      return factor.a.never_negative();
    case Dim::Factor::Kind::Min:
      return factor.a.never_negative() && factor.b.never_negative();
    case Dim::Factor::Kind::Max:
      return factor.a.never_negative() || factor.b.never_negative();
  }
  return false;
}

bool Dim::never_negative() const {
  if (constant_ < 0) return false;
  if (!terms_) return true;
  return std::all_of(terms_->list.begin(), terms_->list.end(), [](const Term& term) {
    return term.coefficient > 0 && std::all_of(term.product.begin(), term.product.end(), surely_not_negative);
  });
}

/// The operands of nested calls of one kind: max(a, max(b, c)) -> a, b, c.
void Dim::collect(bool greatest, std::vector<Dim>& operands) const {
  const bool one_factor = constant_ == 0 && terms_ && terms_->list.size() == 1 &&
                          terms_->list[0].coefficient == 1 && terms_->list[0].product.size() == 1;
  if (one_factor && terms_->list[0].product[0].kind == (greatest ? Factor::Kind::Max : Factor::Kind::Min)) {
    terms_->list[0].product[0].a.collect(greatest, operands);
    terms_->list[0].product[0].b.collect(greatest, operands);
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
    factor.a = kept[i];
    factor.b = result;
    result = of_factor(std::move(factor));
  }
  return result;
}

Dim min(const Dim& a, const Dim& b) {
  return Dim::Store::get().remember(
      '<', a, b, [](const Dim& left, const Dim& right) { return Dim::extremum(false, left, right); });
}

Dim max(const Dim& a, const Dim& b) {
  return Dim::Store::get().remember(
      '>', a, b, [](const Dim& left, const Dim& right) { return Dim::extremum(true, left, right); });
}

}  // namespace tfc::ir
