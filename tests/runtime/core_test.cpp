// The core gives what a session gives, in memory of the caller with guard pages behind it.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "fake_models.h"

namespace tc::test {
namespace {

/// `bytes` that end where the readable pages end.
class Guarded {
 public:
  explicit Guarded(size_t bytes) {
    const size_t page = static_cast<size_t>(getpagesize());
    usable_ = (bytes + page - 1) / page * page;
    base_ = static_cast<char*>(
        mmap(nullptr, usable_ + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_ + usable_, page, PROT_NONE);
    std::memset(base_, 0x5a, usable_);
    data = base_ + usable_ - bytes;
  }
  ~Guarded() { munmap(base_, usable_ + static_cast<size_t>(getpagesize())); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  char* data;

 private:
  char* base_;
  size_t usable_;
};

constexpr int32_t kTokens[6] = {1, 2, 3, 4, 5, 6};

class CoreTest : public ::testing::Test {
 protected:
  CoreTest() : f_(decoder(), options_of(1)) {
    core_.size = sizeof core_;
    core_.params = f_.parameters();
    core_.threads = 2;
    core_.error = error_;
    core_.error_size = sizeof error_;
    batch_ = batch_of(2, 3);
    batch_.tokens = kTokens;
  }
  void give(const Guarded& workspace, size_t bytes) {
    core_.workspace = workspace.data;
    core_.workspace_bytes = bytes;
  }

  Fixture f_;
  tc_core core_{};
  char error_[256] = "";
  tc_batch batch_;
};

TEST_F(CoreTest, ForwardInExactlyThePublishedWorkspace) {
  const size_t bytes = tc_rt_workspace_bytes(TC_ENTRY_INFER, 2, 3, 0, 2);
  const Guarded workspace(bytes);
  give(workspace, bytes);
  std::vector<float> a(6 * kVocab), b(6 * kVocab);
  void* outputs[1] = {b.data()};
  for (int round = 0; round < 2; ++round)
    ASSERT_EQ(tc_rt_core_forward(&core_, &batch_, 0, a.data()), TC_OK) << error_;
  ASSERT_EQ(tc_rt_forward(f_.session, &batch_, 0, outputs), TC_OK);
  EXPECT_EQ(a, b);
  core_.workspace_bytes = bytes - 1;
  EXPECT_EQ(tc_rt_core_forward(&core_, &batch_, 0, a.data()), TC_E_MEMORY);
  EXPECT_NE(std::strstr(error_, "core.workspace_bytes is"), nullptr);
}

TEST_F(CoreTest, TrainsAsASessionDoes) {
  const int32_t targets[6] = {2, 3, 4, 5, 6, 7};
  const void* heads[1] = {targets};
  batch_.targets = heads;
  const size_t bytes = std::max(tc_rt_workspace_bytes(TC_ENTRY_TRAIN, 2, 3, 0, 2),
                                tc_rt_workspace_bytes(TC_ENTRY_STEP, 0, 0, 0, 2));
  const Guarded workspace(bytes);
  give(workspace, bytes);
  std::vector<float> parameters(f_.parameters(), f_.parameters() + kBlock), grads(kBlock), m1(kBlock),
      m2(kBlock);
  core_.params = parameters.data();
  core_.grads = grads.data();
  core_.moment1 = m1.data();
  core_.moment2 = m2.data();
  tc_adamw settings = adamw_of(0.1);
  double sum = 0, count = 0, norm = -1, mean = 0;
  EXPECT_EQ(tc_rt_core_step(&core_, &settings, 1, &norm), TC_OK) << "divisor 0";
  EXPECT_EQ(norm, 0.0);
  ASSERT_EQ(tc_rt_core_train(&core_, &batch_, 0, &sum, &count), TC_OK) << error_;
  settings.count = count;
  ASSERT_EQ(tc_rt_core_step(&core_, &settings, 1, &norm), TC_OK) << error_;
  settings.count = 0;
  ASSERT_EQ(tc_rt_train_step(f_.session, &batch_, &settings, &mean), TC_OK);
  EXPECT_EQ(mean, sum / count);
  EXPECT_TRUE(std::equal(parameters.begin(), parameters.end(), f_.parameters()));
  EXPECT_EQ(grads, std::vector<float>(kBlock, 0.0f));
}

TEST_F(CoreTest, DecodesWithTheCallersLengths) {
  const size_t bytes = tc_rt_decode_workspace_bytes(2, 1, 0, 4, 2),
               cache_bytes = tc_rt_memory(TC_MEMORY_CACHE, 2, 4, 0, 0);
  const Guarded workspace(bytes), cache(cache_bytes);
  give(workspace, bytes);
  core_.cache = cache.data;
  core_.capacity = 4;
  int32_t lengths[2] = {0, 0};
  core_.cache_lengths = lengths;
  float logits[2 * kVocab], expected[2 * kVocab];
  for (int t = 0; t < 3; ++t) {
    const int32_t next[2] = {kTokens[t], kTokens[3 + t]};
    tc_batch part = batch_of(2, 1);
    part.tokens = next;
    ASSERT_EQ(tc_rt_core_decode(&core_, &part, logits), TC_OK) << error_;
    lengths[0]++, lengths[1]++;
  }
  void* outputs[1] = {expected};
  ASSERT_EQ(tc_rt_forward(f_.session, &batch_, 1, outputs), TC_OK);
  EXPECT_EQ(0, std::memcmp(logits, expected, sizeof logits));
  lengths[1] = 4;
  EXPECT_EQ(tc_rt_core_decode(&core_, &batch_, logits), TC_E_ARGUMENT);
  EXPECT_STREQ(error_, "row 0 of the cache has 3 of 4 tokens, and 3 more do not fit");
}

TEST_F(CoreTest, MissingMemoryIsNamed) {
  float out[6 * kVocab];
  EXPECT_EQ(tc_rt_core_forward(&core_, &batch_, 0, out), TC_E_ARGUMENT);
  EXPECT_STREQ(error_, "core.workspace is NULL");
  core_.params = nullptr;
  EXPECT_EQ(tc_rt_core_forward(&core_, &batch_, 0, out), TC_E_ARGUMENT);
  EXPECT_STREQ(error_, "core.params is NULL");
  EXPECT_EQ(tc_rt_core_forward(nullptr, &batch_, 0, out), TC_E_ARGUMENT);
  EXPECT_EQ(tc_rt_core_vjp(&core_, &batch_, 0, out, nullptr), TC_E_STATE) << "a decoder of tokens has none";
  EXPECT_EQ(tc_rt_workspace_bytes(TC_ENTRY_VJP, 1, 1, 1, 1), 0u);
}

}  // namespace
}  // namespace tc::test
