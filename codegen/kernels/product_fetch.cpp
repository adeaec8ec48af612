#include "codegen/kernels/product_fetch.h"

namespace tfc::codegen {

namespace {

Val ceiling(Val a, Val b) { return (a + (b - 1)) / b; }

/// Of `rows`, the part of one of `calls`, in the unit of the tiles' loop.
Val share_of(Val rows, Val calls) { return ceiling(rows, calls * kFetchRowsAtOnce) * kFetchRowsAtOnce; }

}  // namespace

FetchStream::FetchStream(KernelBuilder& k, Ptr fetch, int stream)
    : k_(k),
      words_(k.at(fetch, k.index(stream * kFetchWords))),
      address_(k.var(k.index(0))),
      group_step_(k.var(k.index(0))),
      groups_(k.var(k.index(1))),
      rows_(k.var(k.index(0))),
      share_(k.var(k.index(0))),
      group_(k.var(k.index(0))),
      row_step_(k.var(k.index(0))) {}

Ptr FetchStream::word(FetchWord which) const { return k_.at(words_, k_.index(which)); }

void FetchStream::begin(Val address, Val line_step, Val row_step) {
  address_.set(address);
  row_step_.set(row_step);
  group_.set(k_.index(0));
  k_.store(word(kFetchLineStep), k_.index(0), line_step);
  k_.store(word(kFetchRowStep), k_.index(0), row_step);
}

void FetchStream::along_depth(Val address, Val ld, Val rows, Val calls) {
  begin(address, k_.index(kLineBytes), ld);
  group_step_.set(k_.index(0));
  groups_.set(k_.index(1));
  rows_.set(rows);
  share_.set(share_of(rows, calls));
}

void FetchStream::across_depth(Val address, Val ld, Val bytes, Val depth, Val lines, Val calls) {
  const Val groups = ceiling(depth, lines), rows = ceiling(bytes, k_.index(kLineBytes));
  begin(address, ld, k_.index(kLineBytes));
  group_step_.set(lines * ld);
  groups_.set(groups);
  rows_.set(rows);
  share_.set(share_of(rows * groups, calls));
}

void FetchStream::next() {
  const Val group = group_.get(), share = share_.get(), rows = rows_.get();
  k_.store(word(kFetchAddress), k_.index(0), address_.get() + group * group_step_.get());
  k_.store(word(kFetchRows), k_.index(0), k_.select(rows > 0, share, k_.index(0)));
  const Val last = group + 1 == groups_.get();
  group_.set(k_.select(last, k_.index(0), group + 1));
  address_.set(k_.select(last, address_.get() + share * row_step_.get(), address_.get()));
  rows_.set(k_.select(last, rows - share, rows));
}

}  // namespace tfc::codegen
