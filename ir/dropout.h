// The random numbers of dropout: which elements a place drops is a function of
//   (seed, call)   the model's seed, and the number of the call among those that drop
//   (b, t)         the row: sequence and token
//   place, h       the node that drops, by its name, and the attention head (0 elsewhere)
//   column         the element of the row: its column, or the key that an attention weight belongs to
// and of nothing else: not of sizes, strides, tasks or threads, so that the backward pass draws again what the
// forward pass drew.
//
//   row     = the first two words of Philox4x32-10 (Salmon et al. 2011, doi:10.1145/2063384.2063405) with the
//             counter (t, b, low and high half of call) and the key (low and high half of seed)
//   stream  = finish(place + h), where place is the 64-bit FNV-1a hash of the name, halved, and finish that
//             of SplitMix64 (Steele, Lea, Flood 2014, doi:10.1145/2660193.2660195)
//   (a, b)  = row xor (low and high half of stream); inside expert e of a mixture also xor those of finish(e)
//   x = column ^ a;   x = (x ^ x >> 17) * 0xed5ad4bb + b;   x = (x ^ x >> 11) * 0xac4c1b51;
//   draw    = (x ^ x >> 15) * 0x31848bab         (32 bits; constants: C. Wellons, hash prospector)
// An element is dropped where draw < p * 2^32, rounded; what is kept is multiplied by 1 / (1 - p).
#pragma once

#include <cstdint>
#include <string_view>

namespace tfc::ir {

/// Words of the input `dropout` i32[5]: seed and call, low halves first, and whether this call drops at all.
inline constexpr int64_t kDropoutWords = 5;

uint64_t dropout_place(std::string_view name);
uint64_t dropout_stream(uint64_t place, uint64_t head);

struct DropoutRow {
  uint32_t first, second;
};
DropoutRow dropout_row(uint64_t seed, uint64_t call, uint32_t b, uint32_t t);

uint32_t dropout_draw(DropoutRow row, uint64_t stream, uint32_t column);

/// Draws below it are dropped: 0 to 2^32.
uint64_t dropout_threshold(double p);
/// 1 / (1 - p); 0 where everything is dropped.
double dropout_scale(double p);

}  // namespace tfc::ir
