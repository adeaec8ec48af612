#include "ir/dim.h"

#include <algorithm>
#include <charconv>
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

static Dim::Factor call(Dim::Factor::Kind kind, const Dim& a, const Dim& b) {
  Dim::Factor factor;
  factor.kind = kind;
  factor.a =
      std::make_shared<const Dim>(b < a ? b : a);  // both calls are symmetric: one form for either order
  factor.b = std::make_shared<const Dim>(b < a ? a : b);
  return factor;
}

Dim min(const Dim& a, const Dim& b) {
  if (a == b) return a;
  if (a.constant() && b.constant()) return Dim(std::min(*a.constant(), *b.constant()));
  return Dim::of_factor(call(Dim::Factor::Kind::Min, a, b));
}

Dim max(const Dim& a, const Dim& b) {
  if (a == b) return a;
  if (a.constant() && b.constant()) return Dim(std::max(*a.constant(), *b.constant()));
  return Dim::of_factor(call(Dim::Factor::Kind::Max, a, b));
}

// ---- text -> Dim ----

namespace {

class DimParser {
 public:
  explicit DimParser(std::string_view text) : text_(text) {}

  std::optional<Dim> parse() {
    std::optional<Dim> dim = sum();
    skip();
    return dim && at_ == text_.size() ? dim : std::nullopt;
  }

 private:
  static constexpr int kDeepest = 64;  // nesting that no plan reaches; guards the stack against made-up text

  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  std::optional<Dim> sum() {
    if (++depth_ > kDeepest) return std::nullopt;
    Dim total;
    bool negative = take('-');
    while (true) {
      const std::optional<Dim> term = product();
      if (!term) return std::nullopt;
      total = negative ? total - *term : total + *term;
      if (take('+')) {
        negative = false;
      } else if (take('-')) {
        negative = true;
      } else {
        break;
      }
    }
    --depth_;
    return total;
  }

  std::optional<Dim> product() {
    std::optional<Dim> result = factor();
    while (result && take('*')) {
      const std::optional<Dim> next = factor();
      if (!next) return std::nullopt;
      result = *result * *next;
    }
    return result;
  }

  std::optional<int64_t> number() {
    skip();
    int64_t value = 0;
    const auto [end, failure] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (failure != std::errc()) return std::nullopt;
    at_ = static_cast<size_t>(end - text_.data());
    return value;
  }

  std::optional<Dim> factor() {
    skip();
    if (at_ >= text_.size()) return std::nullopt;
    const std::string_view rest = text_.substr(at_);
    for (const char* name : {"ceildiv(", "min(", "max("})
      if (rest.starts_with(name)) return call(name);
    if (take('(')) {
      const std::optional<Dim> inner = sum();
      return inner && take(')') ? inner : std::nullopt;
    }
    if (rest[0] >= '0' && rest[0] <= '9') {
      const std::optional<int64_t> value = number();
      return value ? std::optional<Dim>(Dim(*value)) : std::nullopt;
    }
    for (int s = 0; s < kSymbolCount; ++s)
      if (take(symbol_letter(static_cast<Symbol>(s)))) return Dim(static_cast<Symbol>(s));
    return std::nullopt;
  }

  std::optional<Dim> call(std::string_view name) {
    at_ += name.size();
    const std::optional<Dim> a = sum();
    if (!a || !take(',')) return std::nullopt;
    if (name == "ceildiv(") {
      const std::optional<int64_t> n = number();
      if (!n || *n <= 0 || !take(')')) return std::nullopt;
      return ceildiv(*a, *n);
    }
    const std::optional<Dim> b = sum();
    if (!b || !take(')')) return std::nullopt;
    return name == "min(" ? min(*a, *b) : max(*a, *b);
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::optional<Dim> Dim::parse(std::string_view text) { return DimParser(text).parse(); }

}  // namespace tfc::ir
