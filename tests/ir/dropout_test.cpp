// The numbers of dropout: known values, and what chance says of many of them.
#include "ir/dropout.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

namespace tfc::ir {
namespace {

/// Of Random123's known answers for philox4x32, ten rounds: counter and key all zeros, all ones, digits of pi.
TEST(Dropout, RowsArePhilox) {
  EXPECT_EQ(dropout_row(0, 0, 0, 0).first, 0x6627e8d5u);
  EXPECT_EQ(dropout_row(0, 0, 0, 0).second, 0xe169c58du);
  const uint64_t ones = ~uint64_t{0};
  EXPECT_EQ(dropout_row(ones, ones, ~0u, ~0u).first, 0x408f276du);
  EXPECT_EQ(dropout_row(ones, ones, ~0u, ~0u).second, 0x41c83b0eu);
  const DropoutRow pi = dropout_row(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3, 0x243f6a88);
  EXPECT_EQ(pi.first, 0xd16cfe09u);
  EXPECT_EQ(pi.second, 0x94fdccebu);
}

/// Of one place and call: 1 where an element is dropped.
std::vector<char> mask(double p, uint64_t seed, uint64_t call, const char* place, uint64_t head, int64_t rows,
                       int64_t width) {
  std::vector<char> dropped;
  const uint64_t stream = dropout_stream(dropout_place(place), head);
  for (int64_t t = 0; t < rows; ++t) {
    const DropoutRow row = dropout_row(seed, call, 0, static_cast<uint32_t>(t));
    for (int64_t w = 0; w < width; ++w)
      dropped.push_back(dropout_draw(row, stream, static_cast<uint32_t>(w)) < dropout_threshold(p));
  }
  return dropped;
}

/// How many deviations of chance the agreement of two masks lies from that of independent ones.
double correlation(const std::vector<char>& a, const std::vector<char>& b, double p) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - p) * (b[i] - p);
  return sum / (p * (1 - p) * std::sqrt(static_cast<double>(a.size())));
}

constexpr double kDeviations = 5;
constexpr int64_t kRows = 1000, kWidth = 384;

TEST(Dropout, DropsItsShareOfElementsRowsAndColumns) {
  for (const double p : {0.01, 0.1, 0.5, 0.9}) {
    const std::vector<char> dropped = mask(p, 7, 3, "layers.0.ffn.dropout", 0, kRows, kWidth);
    double all = 0, of_rows = 0, of_columns = 0;
    std::vector<double> columns(kWidth);
    for (int64_t t = 0; t < kRows; ++t) {
      double row = 0;
      for (int64_t w = 0; w < kWidth; ++w) {
        row += dropped[static_cast<size_t>(t * kWidth + w)];
        columns[static_cast<size_t>(w)] += dropped[static_cast<size_t>(t * kWidth + w)];
      }
      all += row;
      of_rows += std::pow(row - p * kWidth, 2) / (p * (1 - p) * kWidth);
    }
    for (const double column : columns) of_columns += std::pow(column - p * kRows, 2) / (p * (1 - p) * kRows);
    const double count = kRows * kWidth;
    EXPECT_NEAR(all, p * count, kDeviations * std::sqrt(p * (1 - p) * count)) << p;
    EXPECT_NEAR(of_rows, kRows, kDeviations * std::sqrt(2.0 * kRows)) << p;  // chi-squared
    EXPECT_NEAR(of_columns, kWidth, kDeviations * std::sqrt(2.0 * kWidth)) << p;
  }
}

TEST(Dropout, PlacesCallsSeedsAndHeadsAreIndependent) {
  for (const double p : {0.1, 0.5}) {
    const auto with = [&](uint64_t seed, uint64_t call, const char* place, uint64_t head) {
      return mask(p, seed, call, place, head, kRows, kWidth);
    };
    const std::vector<std::vector<char>> masks = {
        with(7, 0, "layers.0.attn", 0),   with(7, 1, "layers.0.attn", 0),   with(8, 0, "layers.0.attn", 0),
        with(7, 0, "layers.0.attn", 1),   with(7, 0, "layers.0.attn", 2),   with(7, 0, "layers.1.attn", 0),
        with(7, 0, "layers.10.attn", 0),  with(7, 0, "embedding.dropout", 0), with(7, 1ull << 32, "layers.0.attn", 0),
        with(7ull << 32, 0, "layers.0.attn", 0)};
    for (size_t i = 0; i < masks.size(); ++i)
      for (size_t j = 0; j < i; ++j) EXPECT_LT(std::abs(correlation(masks[i], masks[j], p)), kDeviations) << i << j;
  }
}

TEST(Dropout, NeighboursAreIndependent) {
  for (const double p : {0.1, 0.5}) {
    const std::vector<char> dropped = mask(p, 1, 2, "layers.0.attn", 0, kRows, kWidth);
    for (const size_t distance : {1, 2, 3, 4, 8, 16, 32, 64, 128, 256, 384, 768}) {  // columns, then rows
      const std::vector<char> left(dropped.begin(), dropped.end() - static_cast<ptrdiff_t>(distance));
      const std::vector<char> right(dropped.begin() + static_cast<ptrdiff_t>(distance), dropped.end());
      EXPECT_LT(std::abs(correlation(left, right, p)), kDeviations) << distance;
    }
  }
}

TEST(Dropout, ProbabilitiesAreExactAtBothEnds) {
  EXPECT_EQ(dropout_threshold(0), 0u);
  EXPECT_EQ(dropout_threshold(1), uint64_t{1} << 32);
  EXPECT_EQ(dropout_threshold(0.5), uint64_t{1} << 31);
  EXPECT_EQ(dropout_scale(0), 1);
  EXPECT_EQ(dropout_scale(0.75), 4);
  EXPECT_EQ(dropout_scale(1), 0);
}

}  // namespace
}  // namespace tfc::ir
