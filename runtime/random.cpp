#include "runtime/random.h"

#include <math.h>
#include <string.h>

#include "runtime/description.h"
#include "runtime/mathematics.h"

namespace tc {

RandomBits philox(uint64_t key, uint64_t counter_low, uint64_t counter_high) {
  uint32_t c0 = static_cast<uint32_t>(counter_low), c1 = static_cast<uint32_t>(counter_low >> 32);
  uint32_t c2 = static_cast<uint32_t>(counter_high), c3 = static_cast<uint32_t>(counter_high >> 32);
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * c0, b = uint64_t{0xCD9E8D57} * c2;
    c0 = static_cast<uint32_t>(b >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(b);
    c2 = static_cast<uint32_t>(a >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(a);
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {{c0, c1, c2, c3}};
}

namespace {

constexpr int64_t kTaskElements = 1 << 15;  // a multiple of 4: Philox gives four numbers at a time
constexpr int64_t kClearTask = 1 << 20;

struct Filling {
  const ModelDesc* model;
  const ParamDesc* parameter;
  uint64_t seed, stream;
  char* target;  // the parameter's first element
};

/// Four independent numbers of deviation 1 (Box, Muller 1958).
void four_normals(const RandomBits& bits, double out[4]) {
  for (int pair = 0; pair < 2; ++pair) {
    const double radius = sqrt(-2 * natural_log(uniform(bits.word[2 * pair])));
    double sine, cosine;
    sine_cosine_turns(static_cast<double>(bits.word[2 * pair + 1]) * 0x1p-32, sine, cosine);
    out[2 * pair] = radius * cosine;
    out[2 * pair + 1] = radius * sine;
  }
}

void four_numbers(const Filling& filling, int64_t group, double out[4]) {
  const ParamDesc& parameter = *filling.parameter;
  const RandomBits bits = philox(filling.seed, static_cast<uint64_t>(group), filling.stream);
  if (parameter.init == InitNormal) {
    four_normals(bits, out);
    for (int i = 0; i < 4; ++i) out[i] *= parameter.init_value;
    return;
  }
  for (int i = 0; i < 4; ++i) out[i] = (2 * uniform(bits.word[i]) - 1) * parameter.init_value;
}

void store(const ModelDesc& model, char* target, int64_t element, double value) {
  if (model.real == TypeF64) {
    reinterpret_cast<double*>(target)[element] = value;
  } else {
    reinterpret_cast<float*>(target)[element] = static_cast<float>(value);
  }
}

void fill_tasks(const void* self, int64_t first, int64_t last, int) {
  const Filling& filling = *static_cast<const Filling*>(self);
  const ParamDesc& parameter = *filling.parameter;
  const int64_t end = last * kTaskElements < parameter.elements ? last * kTaskElements : parameter.elements;
  for (int64_t element = first * kTaskElements; element < end; element += 4) {
    double numbers[4] = {parameter.init_value, parameter.init_value, parameter.init_value,
                         parameter.init_value};
    if (parameter.init != InitConstant) four_numbers(filling, element / 4, numbers);
    for (int64_t i = 0; i < 4 && element + i < end; ++i) {
      store(*filling.model, filling.target, element + i, numbers[i]);
    }
  }
}

struct Clearing {
  char* memory;
  int64_t bytes;
};

void clear_tasks(const void* self, int64_t first, int64_t last, int) {
  const Clearing& clearing = *static_cast<const Clearing*>(self);
  const int64_t begin = first * kClearTask;
  const int64_t end = last * kClearTask < clearing.bytes ? last * kClearTask : clearing.bytes;
  memset(clearing.memory + begin, 0, static_cast<size_t>(end - begin));
}

}  // namespace

void initialise(const ModelDesc& model, uint64_t seed, void* parameters, const Executor& executor) {
  clear(parameters, block_bytes(model), executor);
  for (int32_t p = 0; p < model.param_count; ++p) {
    const ParamDesc& parameter = model.params[p];
    if (parameter.init == InitConstant && parameter.init_value == 0) continue;
    const Filling filling{&model, &parameter, seed,
                          random_stream(RandomUse::Initialise, static_cast<uint64_t>(p)),
                          static_cast<char*>(parameters) + parameter.offset * real_bytes(model)};
    executor.run({fill_tasks, &filling}, (parameter.elements + kTaskElements - 1) / kTaskElements);
  }
}

void clear(void* memory, int64_t bytes, const Executor& executor) {
  const Clearing clearing{static_cast<char*>(memory), bytes};
  executor.run({clear_tasks, &clearing}, (bytes + kClearTask - 1) / kClearTask);
}

}  // namespace tc
