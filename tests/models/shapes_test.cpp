// One library runs every shape: in any order, with the results of a session that saw no other, and with the
// memory that it says it needs.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <random>

#include "models/descriptions.h"
#include "models/session.h"

namespace tfc::models {
namespace {

struct Shape {
  int64_t B, T, S;
};

/// Sizes up to the given ones, ones among them far more often than chance.
Shape random_shape(std::mt19937_64& random, int64_t B, int64_t T, int64_t S) {
  const auto size = [&](int64_t most) {
    return random() % 4 == 0 ? int64_t{1} : 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(most));
  };
  return {size(B), size(T), size(S)};
}

std::string text(const Shape& shape) {
  return "B=" + std::to_string(shape.B) + " T=" + std::to_string(shape.T) + " S=" + std::to_string(shape.S);
}

class Shapes : public testing::TestWithParam<const char*> {};

TEST_P(Shapes, InVaryingOrderAsInAFreshSession) {
  const Compiled compiled = compile(case_named(GetParam()).text);
  Session used(compiled, with_threads(2));
  const int64_t most = used.info.max_seq > 0 ? used.info.max_seq : 40;
  std::mt19937_64 random(11);
  for (int run = 0; run < 150; ++run) {
    const Shape shape = random_shape(random, 7, most, most);
    Session fresh(compiled);
    const Call call = random_call(fresh, shape.B, shape.T, shape.S, static_cast<uint64_t>(run));
    ASSERT_EQ(differences(used.everything(call, call.batch.grad_output),
                          fresh.everything(call, call.batch.grad_output)),
              "")
        << text(shape);
  }
}

// Everything that a library allocates, as it asks for it.
struct Account {
  int64_t live = 0, most = 0;
};

void* counted_alloc(void* user, size_t bytes, size_t align) {
  auto* account = static_cast<Account*>(user);
  const size_t header = align;  // where the size is kept
  void* memory = nullptr;
  if (posix_memalign(&memory, align, bytes + header) != 0) return nullptr;
  *static_cast<size_t*>(memory) = bytes;
  account->live += static_cast<int64_t>(bytes);
  account->most = std::max(account->most, account->live);
  return static_cast<char*>(memory) + header;
}

void counted_release(void* user, void* memory) {
  char* begin = static_cast<char*>(memory) - 64;
  static_cast<Account*>(user)->live -= static_cast<int64_t>(*reinterpret_cast<size_t*>(begin));
  free(begin);
}

TEST_P(Shapes, AllocateWhatMemorySaysAndNoMore) {
  const Compiled compiled = compile(case_named(GetParam()).text);
  Account account;
  {
    tc_options options = with_threads(3);
    options.alloc = counted_alloc;
    options.release = counted_release;
    options.user = &account;
    Session session(compiled, options);
    const auto memory = [&](int what, const Shape& s) {
      return static_cast<int64_t>(session.api.memory(what, s.B, s.T, s.S, 3));
    };
    const auto workspace = [&](int entry, const Shape& s) { return memory(TC_MEMORY_WORKSPACE + entry, s); };
    int64_t owned =
        memory(TC_MEMORY_MODEL, {}) + memory(TC_MEMORY_PARAMETERS, {}) + memory(TC_MEMORY_SESSION, {});
    EXPECT_EQ(account.live, owned) << "a new model with a session";

    const Shape small{1, 1, 1}, large{5, 3, 4};
    int64_t largest = 0;
    const auto expect_workspace = [&](int entry, const Shape& shape) {
      largest = std::max(largest, workspace(entry, shape));
      EXPECT_EQ(account.live, owned + largest) << "after entry " << entry << " at " << text(shape);
    };
    for (const Shape& shape : {small, large, small}) {
      const Call call = random_call(session, shape.B, shape.T, shape.S);
      session.forward(call);
      expect_workspace(TC_ENTRY_INFER, shape);
    }
    const Call call = random_call(session, large.B, large.T, large.S);
    owned += memory(TC_MEMORY_GRADIENTS, {});
    if (compiled.has("train")) {
      session.backward(call);
      expect_workspace(TC_ENTRY_TRAIN, large);
    } else {
      session.vjp(call, call.batch.grad_output);
      expect_workspace(TC_ENTRY_VJP, large);
    }
    owned += memory(TC_MEMORY_MOMENTS, {});
    session.step();
    expect_workspace(TC_ENTRY_STEP, {});
    if (compiled.has("decode")) {
      const Shape cache{large.B, session.info.max_seq > 0 ? session.info.max_seq : large.T, large.S};
      session.reset_cache(call, cache.T);
      owned += memory(TC_MEMORY_CACHE, cache);
      if (session.is_pair()) largest = std::max(largest, workspace(TC_ENTRY_ENCODE, cache));
      session.decode(call);
      expect_workspace(TC_ENTRY_DECODE, large);
    }
  }
  EXPECT_EQ(account.live, 0) << "memory that was not given back";
}

/// A memory limit of what is needed suffices, and one byte less does not and leaves the model usable.
TEST_P(Shapes, RunUnderALimitOfThatMuch) {
  const Compiled compiled = compile(case_named(GetParam()).text, {.optimisation = 0});
  const Shape shape{5, 3, 4};
  const auto bytes = [&](int what) { return compiled.api().memory(what, shape.B, shape.T, shape.S, 1); };
  const size_t needed = bytes(TC_MEMORY_SESSION) + bytes(int{TC_MEMORY_WORKSPACE} + int{TC_ENTRY_INFER});
  Session session(compiled);
  const Call call = random_call(session, shape.B, shape.T, shape.S);
  const Bytes expected = session.forward(call);
  for (const size_t limit : {needed, needed - 1}) {
    tc_options options = with_threads(1);
    options.memory_limit = limit;
    tc_session* other = nullptr;
    ASSERT_EQ(session.api.session_create(session.model, &options, &other), TC_OK);
    Bytes output(expected.size());
    void* outputs[] = {output.data()};
    const tc_status status = session.api.forward(other, &call.get(), 0, outputs);
    EXPECT_EQ(status, limit == needed ? TC_OK : TC_E_MEMORY);
    EXPECT_EQ(output == expected, limit == needed);
    if (limit < needed) {
      EXPECT_NE(std::string(session.api.message(other)).find("memory_limit"), std::string::npos);
      const Call smaller = random_call(session, 1, 1, 1);
      Bytes small(session.forward(smaller).size());
      outputs[0] = small.data();
      EXPECT_EQ(session.api.forward(other, &smaller.get(), 0, outputs), TC_OK) << session.api.message(other);
      EXPECT_TRUE(small == session.forward(smaller));
    }
    session.api.session_destroy(other);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Shapes, testing::Values("gpt", "transformer", "bert", "decoder_floats"),
                         [](const auto& info) { return std::string(info.param); });

int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t pages = 0, resident = 0;
  statm >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

/// Thousands of shapes keep no more than the largest needs.
TEST(ManyShapes, KeepNothing) {
  const Compiled compiled = compile(case_named("transformer").text);
  Session session(compiled, with_threads(2));
  const auto run = [&](const Shape& shape, uint64_t seed) {
    const Call call = random_call(session, shape.B, shape.T, shape.S, seed);
    session.forward(call);
    session.backward(call);
    session.step();
    session.reset_cache(call, shape.T);
    session.decode(call);
  };
  std::mt19937_64 random(5);
  run({9, 31, 31}, 0);
  for (int i = 0; i < 100; ++i) run(random_shape(random, 9, 31, 31), static_cast<uint64_t>(i));
  const int64_t before = resident_bytes();
  for (int i = 0; i < 2500; ++i) run(random_shape(random, 9, 31, 31), static_cast<uint64_t>(i));
  EXPECT_LE(resident_bytes(), before + (int64_t{1} << 20));
}

}  // namespace
}  // namespace tfc::models
