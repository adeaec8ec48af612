// Text -> Dim.
#include <charconv>

#include "ir/dim.h"

namespace tfc::ir {
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
