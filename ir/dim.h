// Symbolic sizes: canonical polynomials in the run-time dimensions of a call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tfc::ir {

/// The run-time sizes that a generated library learns only when it is called.
///   B batch   T target (own) tokens   S source (key) tokens   C cache capacity   I index of the enclosing
///   plan loop
enum class Symbol : uint8_t { B, T, S, C, I };
inline constexpr int kSymbolCount = 5;
char symbol_letter(Symbol symbol);

/// Words of the postfix programs that `Dim::encode` writes: the numbers of ExprOp in runtime/plan.h, which
/// this library may not include (codegen asserts that they agree). Const, Symbol and CeilDiv are followed by
/// one operand.
enum class DimCode : int64_t { End, Const, Symbol, Add, Mul, CeilDiv, Min, Max };

/// Concrete values for the symbols: what `--at B=4,T=256` sets, or one call's sizes.
struct Point {
  int64_t values[kSymbolCount] = {8, 256, 256, 256, 0};
  int64_t& operator[](Symbol s) { return values[static_cast<int>(s)]; }
  int64_t operator[](Symbol s) const { return values[static_cast<int>(s)]; }
};

/// An integer expression, kept as a canonical sum of products, so that equality is equality of form: two Dims
/// compare equal exactly if they print the same text. Factors are symbols, or `ceildiv(a, n)`, `min(a, b)`,
/// `max(a, b)` of other Dims (those three occur in plans, never in the shapes of values).
/// Nothing here proves inequalities (but see never_negative); decisions are taken `at` a point.
///
/// Small and copied freely: a graph holds hundreds of thousands of a few hundred different ones, so what is
/// not a number is stored once in the process, with its text, and for as long as that lasts.
class Dim {
 public:
  struct Factor;                        // a symbol or a ceildiv/min/max call
  using Product = std::vector<Factor>;  // sorted

  Dim() = default;                            // 0
  Dim(int64_t number) : constant_(number) {}  // NOLINT: numbers are dimensions
  Dim(int number) : constant_(number) {}      // NOLINT
  Dim(Symbol symbol);                         // NOLINT

  std::optional<int64_t> constant() const;  // the value, if no symbol occurs
  bool is_zero() const { return terms_ == nullptr && constant_ == 0; }
  bool mentions(Symbol symbol) const;
  bool never_negative() const;  // plain to see: no negative coefficient; false: perhaps
  int64_t at(const Point& point) const;

  /// "3072*B*T+2"; reads back with parse to an equal Dim.
  std::string text() const;
  void append_text(std::string& to) const;
  static std::optional<Dim> parse(std::string_view text);

  /// Postfix program for the run-time evaluator (DimCode), appended to `code`, its End included.
  void encode(std::vector<int64_t>& code) const;

  size_t hash() const;

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  friend bool operator==(const Dim&, const Dim&) = default;  // equal terms are the same terms
  friend bool operator<(const Dim& a, const Dim& b);         // an arbitrary fixed order, for sorting

 private:
  friend Dim ceildiv(const Dim& a, int64_t n);
  friend Dim min(const Dim& a, const Dim& b);
  friend Dim max(const Dim& a, const Dim& b);
  struct Term;
  struct Terms;
  class Store;  // of all terms
  static Dim of_factor(Factor factor);
  static Dim of_terms(std::vector<Term> list, int64_t constant);
  static Dim sum_of(const Dim& a, const Dim& b);
  static Dim product_of(const Dim& a, const Dim& b);
  static Dim extremum(bool greatest, const Dim& a, const Dim& b);
  void collect(bool greatest, std::vector<Dim>& operands) const;
  void encode_body(std::vector<int64_t>& code) const;

  int64_t constant_ = 0;
  const Terms* terms_ = nullptr;  // all others; null: none
};

struct DimHash {
  size_t operator()(const Dim& dim) const { return dim.hash(); }
};

/// ceil(a / n), n > 0. Folds when `a` is constant or every coefficient is a multiple of n.
Dim ceildiv(const Dim& a, int64_t n);
Dim min(const Dim& a, const Dim& b);  // folds what never_negative decides
Dim max(const Dim& a, const Dim& b);
inline Dim align_up(const Dim& a, int64_t n) { return Dim(n) * ceildiv(a, n); }
Dim operator+(const Dim& a, const Dim& b);
Dim operator-(const Dim& a, const Dim& b);
Dim operator*(const Dim& a, const Dim& b);
bool operator<(const Dim& a, const Dim& b);

struct Dim::Factor {
  enum class Kind : uint8_t { Symbol, CeilDiv, Min, Max } kind = Kind::Symbol;
  Symbol symbol = Symbol::B;  // Kind::Symbol
  int64_t divisor = 1;        // Kind::CeilDiv
  Dim a, b;                   // operands of the calls
  friend bool operator==(const Factor&, const Factor&) = default;
};
bool operator<(const Dim::Factor& a, const Dim::Factor& b);

}  // namespace tfc::ir
