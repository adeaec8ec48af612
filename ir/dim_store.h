// Where the terms of Dims are kept, each sum of products once. Only dim.cpp and dim_store.cpp include this.
#pragma once

#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "ir/dim.h"

namespace tfc::ir {

struct Dim::Term {
  Product product;          // not empty
  int64_t coefficient = 0;  // not zero
  friend bool operator==(const Term&, const Term&) = default;
};

struct Dim::Terms {
  std::vector<Term> list;  // by product
  std::string text;
};

/// Sums and products are remembered too: shapes are multiplied out again and again.
class Dim::Store {
 public:
  static Store& get();

  const Terms* keep(std::vector<Term> list);  // canonical, not empty

  Dim remember(char operation, const Dim& a, const Dim& b, Dim (*compute)(const Dim&, const Dim&));

 private:
  struct Call {
    Dim a, b;
    char operation;
    friend bool operator==(const Call&, const Call&) = default;
  };
  struct CallHash {
    size_t operator()(const Call& call) const;
  };
  struct TermsHash {
    size_t operator()(const Terms* terms) const;
  };
  struct SameTerms {
    bool operator()(const Terms* a, const Terms* b) const { return a->list == b->list; }
  };
  static std::string text_of(const std::vector<Term>& list);

  std::mutex mutex_;
  std::unordered_set<const Terms*, TermsHash, SameTerms> terms_;
  std::unordered_map<Call, Dim, CallHash> results_;
};

}  // namespace tfc::ir
