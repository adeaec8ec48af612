#include "ir/dropout.h"

#include <cmath>

namespace tfc::ir {

uint64_t dropout_place(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash >> 1;  // a number of plans, which are signed
}

uint64_t dropout_stream(uint64_t place, uint64_t head) {
  uint64_t z = place + head;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

DropoutRow dropout_row(uint64_t seed, uint64_t call, uint32_t b, uint32_t t) {
  uint32_t c0 = t, c1 = b, c2 = static_cast<uint32_t>(call), c3 = static_cast<uint32_t>(call >> 32);
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t left = uint64_t{c0} * 0xd2511f53, right = uint64_t{c2} * 0xcd9e8d57;
    c0 = static_cast<uint32_t>(right >> 32) ^ c1 ^ k0;
    c2 = static_cast<uint32_t>(left >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(right);
    c3 = static_cast<uint32_t>(left);
    k0 += 0x9e3779b9;
    k1 += 0xbb67ae85;
  }
  return {c0, c1};
}

uint32_t dropout_draw(DropoutRow row, uint64_t stream, uint32_t column) {
  uint32_t x = column ^ row.first ^ static_cast<uint32_t>(stream);
  x = (x ^ (x >> 17)) * 0xed5ad4bb + (row.second ^ static_cast<uint32_t>(stream >> 32));
  x = (x ^ (x >> 11)) * 0xac4c1b51;
  return (x ^ (x >> 15)) * 0x31848bab;
}

uint64_t dropout_threshold(double p) { return static_cast<uint64_t>(std::llround(p * 0x1p32)); }

double dropout_scale(double p) { return p < 1 ? 1 / (1 - p) : 0; }

}  // namespace tfc::ir
