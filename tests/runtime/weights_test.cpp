// Weight files: what is written is read back bit for bit, conversions, optimizer state, architectures, and
// that a file appears whole or not at all.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <thread>

#include "runtime/convert.h"
#include "weight_files.h"

namespace tc::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

tc_state state_of(const Fixture& f) {
  tc_state state{};
  state.size = sizeof state;
  tc_rt_get_state(f.model, &state);
  return state;
}

uint64_t mxcsr() {
#if defined(__x86_64__)
  return _mm_getcsr();
#else
  return 0;
#endif
}

std::string last_message(const Fixture& f) { return tc_rt_model_message(f.model); }

class Weights : public testing::Test {
 protected:
  Folder folder_;
  std::string path_ = folder_ / "w.safetensors";
};

// -- reading
// ----------------------------------------------------------------------------------------------------------

TEST_F(Weights, OfAFileWrittenByHand) {
  const Fixture f(decoder());
  write_file(path_, weights(kHeader, data()));
  ASSERT_EQ(tc_rt_load(f.model, path_.c_str(), 1), TC_OK) << last_message(f);
  for (int i = 0; i < 37; ++i) EXPECT_EQ(f.parameters()[i], static_cast<float>(i) + 0.5f);
  EXPECT_EQ(f.parameters()[37], 0.0f) << "padding";
  EXPECT_EQ(last_message(f), "");
}

TEST_F(Weights, InAnyOrderWithAnyWhiteSpaceAndEscapes) {
  const Fixture f(decoder());
  write_file(
      path_,
      weights("{ \"frozen\" : {\"data_offsets\":[ 0 , 20 ],\n\"shape\":[5]\t,\"dtype\":\"F\\u00332\"},"
              "\"\\u0065mb\":{\"shape\":[16,1],\"dtype\":\"F32\",\"data_offsets\":[84,148]},"
              "\"bias\":{\"shape\":[16],\"dtype\":\"F32\",\"data_offsets\":[20,84]},"
              "\"__metadata__\":{\"a\\ud83d\\ude00\\n\\\"\":\"\xf0\x9f\x98\x80\",\"b\":\"\\\\\\/\"}} \r\n   ",
              data()));
  ASSERT_EQ(tc_rt_load(f.model, path_.c_str(), 1), TC_OK) << last_message(f);
  EXPECT_EQ(f.parameters()[32], 0.5f);
  EXPECT_EQ(f.parameters()[16], 5.5f);
  EXPECT_EQ(f.parameters()[0], 21.5f);
}

/// The file's `emb` in that type, from those bits; what the model then has.
template <class Bits>
std::vector<float> converted(const std::string& path, const char* type, const std::vector<Bits>& numbers) {
  const Fixture f(decoder());
  const std::string own(reinterpret_cast<const char*>(numbers.data()), 16 * sizeof(Bits));
  const size_t bias = own.size(), frozen = bias + 64, end = frozen + 20;
  std::string header = replaced(kHeader, "\"F32\"", std::string("\"") + type + '"');
  header = replaced(header, "[0,64]", "[0," + std::to_string(bias) + "]");
  header = replaced(header, "[64,128]", "[" + std::to_string(bias) + "," + std::to_string(frozen) + "]");
  header = replaced(header, "[128,148]", "[" + std::to_string(frozen) + "," + std::to_string(end) + "]");
  write_file(path, weights(header, own + data().substr(64)));
  EXPECT_EQ(tc_rt_load(f.model, path.c_str(), 1), TC_OK) << last_message(f);
  return {f.parameters(), f.parameters() + 16};
}

TEST_F(Weights, HalfNumbersAreExact) {
  std::vector<uint16_t> bits = {0x0000, 0x8000, 0x3c00, 0xc000, 0x7bff, 0x0400, 0x03ff, 0x0001,
                                0x7c00, 0xfc00, 0x3555, 0x8001, 0x7e00, 0xfe01, 0x7c01, 0x1400};
  const std::vector<float> half = converted(path_, "F16", bits);
  const float expected[] = {
      0,          -0.0f,           1,        -2, 65504, 0x1p-14f, 1023 * 0x1p-24f, 0x1p-24f, kInfinity,
      -kInfinity, 1365 * 0x1p-12f, -0x1p-24f};
  for (int i = 0; i < 12; ++i)
    EXPECT_EQ(std::bit_cast<uint32_t>(half[i]), std::bit_cast<uint32_t>(expected[i])) << i;
  for (int i = 12; i < 15; ++i) EXPECT_TRUE(std::isnan(half[i])) << i;
  const std::vector<float> brain = converted(path_, "BF16", bits);
  for (int i = 0; i < 16; ++i) EXPECT_EQ(std::bit_cast<uint32_t>(brain[i]), uint32_t{bits[i]} << 16) << i;
}

TEST_F(Weights, DoubleNumbersAreRoundedOnceWhateverTheHostsMode) {
  std::vector<double> numbers = {1 + 0x1p-24, 1 + 0x1.8p-23, 1e300,     -1e300,  0x1p-149, 0x1p-150,
                                 0x1.8p-150,  1e-310,        -0.0,      1.0 / 3, INFINITY, NAN,
                                 0x1p-127,    1e-45,         -0x1p-126, 2.5};
#if defined(__x86_64__)
  const unsigned host = _mm_getcsr();
  _mm_setcsr(host | 0x8040 | 0x6000);  // flushing, towards zero
#endif
  const std::vector<float> got = converted(path_, "F64", numbers);
#if defined(__x86_64__)
  _mm_setcsr(host);
#endif
  for (int i = 0; i < 16; ++i) {
    if (i == 11) continue;
    EXPECT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(static_cast<float>(numbers[i]))) << i;
  }
  EXPECT_TRUE(std::isnan(got[11]));
}

TEST(Conversion, EveryHalfNumberThroughDoubleAndBack) {
  std::vector<uint16_t> bits(65536);
  for (int i = 0; i < 65536; ++i) bits[i] = static_cast<uint16_t>(i);
  std::vector<double> wide(65536);
  std::vector<float> narrow(65536), again(65536);
  const char* source = reinterpret_cast<const char*>(bits.data());
  for (StoredType type : {StoredF16, StoredBF16}) {
    convert(type, source, TypeF64, reinterpret_cast<char*>(wide.data()), 65536);
    convert(type, source, TypeF32, reinterpret_cast<char*>(narrow.data()), 65536);
    convert(StoredF64, reinterpret_cast<char*>(wide.data()), TypeF32, reinterpret_cast<char*>(again.data()),
            65536);
    EXPECT_EQ(std::memcmp(narrow.data(), again.data(), 65536 * sizeof(float)), 0)
        << "NaNs with their payload too";
    for (int i = 0; i < 65536; ++i) {
      const int exponent = type == StoredF16 ? i >> 10 & 31 : i >> 7 & 255,
                fraction = i & (type == StoredF16 ? 1023 : 127);
      const int bias = type == StoredF16 ? 25 : 134, most = type == StoredF16 ? 31 : 255;
      const int one = type == StoredF16 ? 1024 : 128;
      if (exponent == most) {
        ASSERT_EQ(std::isnan(wide[i]), fraction != 0) << i;
        continue;
      }
      const double value = std::ldexp(exponent ? fraction + one : fraction, (exponent ? exponent : 1) - bias);
      ASSERT_EQ(wide[i], i & 0x8000 ? -value : value) << i;
    }
  }
}

// -- writing and reading back
// ----------------------------------------------------------------------------------------------------------

TEST_F(Weights, EveryBitComesBack) {
  const Fixture f(decoder());
  const uint32_t odd[] = {0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001,
                          0xffabcdef, 0x00000001, 0x80000000, 0x007fffff};
  std::memcpy(f.parameters() + 3, odd, sizeof odd);
  const uint64_t host = mxcsr();
  ASSERT_EQ(tc_rt_save(f.model, path_.c_str(), 0), TC_OK) << last_message(f);
  tc_options options = options_of(3);
  options.seed = 99;
  const Fixture other(decoder(), options);
  ASSERT_EQ(tc_rt_load(other.model, path_.c_str(), 1), TC_OK) << last_message(other);
  EXPECT_EQ(mxcsr(), host);
  EXPECT_EQ(std::memcmp(f.parameters(), other.parameters(), kBlock * sizeof(float)), 0);
  EXPECT_EQ(state_of(other).seed, 99u) << "no part of a file without the optimizer";
  EXPECT_EQ(state_of(other).moments, 0);
}

TEST_F(Weights, TheOptimizersStateComesBack) {
  const Fixture f(decoder());
  ASSERT_EQ(tc_rt_allocate(f.model, 1, 1), TC_OK);
  for (int i = 0; i < 32; ++i) {
    static_cast<float*>(tc_rt_block(f.model, TC_BLOCK_MOMENT1))[i] = static_cast<float>(i);
    static_cast<float*>(tc_rt_block(f.model, TC_BLOCK_MOMENT2))[i] = static_cast<float>(-i);
  }
  tc_state state = state_of(f);
  state.seed = ~uint64_t{0}, state.call = 3, state.step_count = uint64_t{1} << 63;
  ASSERT_EQ(tc_rt_set_state(f.model, &state), TC_OK);
  ASSERT_EQ(tc_rt_save(f.model, path_.c_str(), 1), TC_OK);
  const Fixture other(decoder());
  ASSERT_EQ(tc_rt_load(other.model, path_.c_str(), 1), TC_OK) << last_message(other);
  EXPECT_EQ(state_of(other).seed, state.seed);
  EXPECT_EQ(state_of(other).call, state.call);
  EXPECT_EQ(state_of(other).step_count, state.step_count);
  for (int block : {TC_BLOCK_MOMENT1, TC_BLOCK_MOMENT2}) {
    ASSERT_TRUE(tc_rt_block(other.model, block));
    EXPECT_EQ(std::memcmp(tc_rt_block(f.model, block), tc_rt_block(other.model, block), 32 * sizeof(float)),
              0);
  }

  // Before the first step there are none: a model that has some begins anew.
  const Fixture fresh(decoder());
  ASSERT_EQ(tc_rt_save(fresh.model, path_.c_str(), 1), TC_OK);
  ASSERT_EQ(tc_rt_load(other.model, path_.c_str(), 1), TC_OK);
  EXPECT_EQ(static_cast<float*>(tc_rt_block(other.model, TC_BLOCK_MOMENT1))[5], 0.0f);
  EXPECT_EQ(state_of(other).step_count, 0u);
}

TEST_F(Weights, ACopyOfATiedTableMustBeEqual) {
  ModelDesc desc = decoder();
  ParamDesc table[3];
  std::copy(desc.params, desc.params + 3, table);
  table[0].name = "tok_emb.weight";
  desc.params = table;
  const Fixture f(desc);
  const std::string copy = R"(,"head.weight":{"dtype":"F32","shape":[16,1],"data_offsets":[148,212]}})";
  const std::string header =
      replaced(replaced(kHeader, "\"emb\"", "\"tok_emb.weight\""), "[128,148]}}", "[128,148]}" + copy);
  std::string numbers = data() + data().substr(0, 64);
  write_file(path_, weights(header, numbers));
  EXPECT_EQ(tc_rt_load(f.model, path_.c_str(), 1), TC_OK) << last_message(f);
  numbers[148 + 4 * 9] ^= 1;
  write_file(path_, weights(header, numbers));
  EXPECT_EQ(tc_rt_load(f.model, path_.c_str(), 1), TC_E_FORMAT);
  EXPECT_NE(last_message(f).find(
                "\"head.weight\" is \"tok_emb.weight\" itself in this model, but the file's differ, "
                "first at element 9"),
            std::string::npos);
}

// -- architectures
// ----------------------------------------------------------------------------------------------------------

TEST_F(Weights, OfAnotherArchitectureAreRefusedUnlessMeant) {
  ModelDesc ours = decoder(), theirs = decoder();
  theirs.architecture = "attention.heads = 2\nffn.activation = \"gelu\"\nnorm.eps = 1e-05\nwindow = 4\n";
  ours.architecture =
      "attention.heads = 4\nffn.activation = \"gelu\"\nnorm.placement = \"pre\"\nnorm.eps = 1e-05\n";
  const Fixture writer(theirs), reader(ours), same(theirs), unnamed(decoder());
  ASSERT_EQ(tc_rt_save(writer.model, path_.c_str(), 0), TC_OK);
  EXPECT_EQ(tc_rt_load(same.model, path_.c_str(), 1), TC_OK) << last_message(same);
  EXPECT_EQ(tc_rt_load(unnamed.model, path_.c_str(), 1), TC_OK) << last_message(unnamed);
  const std::vector<float> before = reader.everything();
  EXPECT_EQ(tc_rt_load(reader.model, path_.c_str(), 1), TC_E_FORMAT);
  EXPECT_EQ(
      last_message(reader),
      path_ +
          ": it is of another architecture: attention.heads is 2 in the file and 4 here; norm.placement is "
          "not "
          "set in the file and \"pre\" here; window is 4 in the file and not set here (strict=False loads it "
          "all the same)");
  EXPECT_EQ(reader.everything(), before);
  EXPECT_EQ(tc_rt_load(reader.model, path_.c_str(), 0), TC_OK) << last_message(reader);
  std::string bytes = read_file(path_);
  write_file(path_, replaced(bytes, "attention.heads = 2", "attention.heads = 4"));
  EXPECT_EQ(tc_rt_load(reader.model, path_.c_str(), 1), TC_E_FORMAT);
  EXPECT_NE(last_message(reader).find("is not that of its \"architecture\""), std::string::npos);
}

// -- files
// ----------------------------------------------------------------------------------------------------------

mode_t mode_of(const std::string& path) {
  struct stat found {};
  EXPECT_EQ(stat(path.c_str(), &found), 0) << path;
  return found.st_mode & 0777;
}

TEST_F(Weights, FilesHaveSensiblePermissions) {
  const Fixture f(decoder());
  const mode_t mask = umask(027);
  ASSERT_EQ(tc_rt_save(f.model, path_.c_str(), 0), TC_OK);
  umask(mask);
  EXPECT_EQ(mode_of(path_), 0640u);
  chmod(path_.c_str(), 0604);
  ASSERT_EQ(tc_rt_save(f.model, path_.c_str(), 0), TC_OK);
  EXPECT_EQ(mode_of(path_), 0604u) << "as the one that it replaces";
  ASSERT_EQ(symlink("w.safetensors", (folder_ / "link").c_str()), 0);
  ASSERT_EQ(tc_rt_save(f.model, (folder_ / "link").c_str(), 1), TC_OK) << last_message(f);
  EXPECT_EQ(folder_.listing(), "link w.safetensors");
  EXPECT_NE(read_file(path_).find("step_count"), std::string::npos) << "the link still leads to it";
}

TEST_F(Weights, AFailedSaveLeavesNothing) {
  const Fixture f(decoder());
  write_file(path_, "old");
  signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit small{100, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const tc_status status = tc_rt_save(f.model, path_.c_str(), 0);
  setrlimit(RLIMIT_FSIZE, &limit);
  signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(status, TC_E_FILE);
  EXPECT_EQ(last_message(f), "cannot write '" + path_ + "': File too large");
  EXPECT_EQ(read_file(path_), "old");
  EXPECT_EQ(folder_.listing(), "w.safetensors");

  EXPECT_EQ(tc_rt_save(f.model, (folder_ / "none/w").c_str(), 0), TC_E_FILE);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(tc_rt_save(f.model, (folder_ / ".").c_str(), 0), TC_E_FILE);
  EXPECT_EQ(tc_rt_save(f.model, "/dev/null", 0), TC_E_FILE);
  EXPECT_EQ(tc_rt_save(f.model, (folder_ / std::string(300, 'x')).c_str(), 0), TC_E_FILE);
  EXPECT_EQ(tc_rt_save(f.model, (folder_ / std::string(5000, 'x')).c_str(), 0), TC_E_FILE);
  EXPECT_EQ(tc_rt_save(f.model, nullptr, 0), TC_E_ARGUMENT);
  EXPECT_EQ(tc_rt_save(nullptr, path_.c_str(), 0), TC_E_ARGUMENT);
  EXPECT_EQ(folder_.listing(), "w.safetensors");
}

TEST_F(Weights, SeveralThreadsSaveSideBySide) {
  const Fixture a(decoder()), b(decoder());
  const auto save = [&](const Fixture& f, const char* name) {
    for (int i = 0; i < 20; ++i) EXPECT_EQ(tc_rt_save(f.model, (folder_ / name).c_str(), 0), TC_OK);
  };
  std::thread other(save, std::cref(a), "one");
  save(b, "two");
  other.join();
  EXPECT_EQ(folder_.listing(), "one two");
}

// -- who else is there
// ----------------------------------------------------------------------------------------------------------

/// What load and save answer from inside another session's call.
struct Meddler {
  tc_model* model = nullptr;
  std::string path;
  tc_status loaded = TC_OK, saved = TC_OK;
  std::string message;
  static int ask(void* user) {
    Meddler& m = *static_cast<Meddler*>(user);
    if (!m.model) return 0;
    m.saved = tc_rt_save(m.model, m.path.c_str(), 0);
    m.loaded = tc_rt_load(m.model, m.path.c_str(), 1);
    m.message = tc_rt_model_message(m.model);
    return 0;
  }
};

TEST_F(Weights, NoSessionRunsWhileTheyAreRead) {
  Meddler meddler;
  meddler.path = path_;
  tc_options options = options_of(1);
  options.cancelled = Meddler::ask;
  options.user = &meddler;
  const Fixture f(decoder(), options);
  meddler.model = f.model;
  const int32_t tokens[1] = {1};
  const void* heads[1] = {tokens};
  float logits[kVocab];
  void* outputs[1] = {logits};
  tc_batch batch = batch_of(1, 1);
  batch.tokens = tokens;
  ASSERT_EQ(tc_rt_forward(f.session, &batch, 0, outputs), TC_OK);
  EXPECT_EQ(meddler.saved, TC_OK) << "to read a model, any number may";
  EXPECT_EQ(meddler.loaded, TC_E_STATE);
  EXPECT_EQ(meddler.message, "a session of this model is running");
  batch.targets = heads;
  ASSERT_EQ(tc_rt_backward(f.session, &batch, nullptr), TC_OK);
  EXPECT_EQ(meddler.saved, TC_E_STATE);
  EXPECT_EQ(meddler.loaded, TC_E_STATE);
  EXPECT_EQ(meddler.message, "a session is training this model");
  EXPECT_EQ(tc_rt_load(f.model, path_.c_str(), 1), TC_OK) << last_message(f);
  meddler.model = nullptr;
  EXPECT_EQ(tc_rt_forward(f.session, &batch, 0, outputs), TC_OK) << "the session is free again";
}

}  // namespace
}  // namespace tc::test
