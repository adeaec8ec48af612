// Files that are not what they should be: each is refused at once, with a sentence that says what is wrong,
// and nothing has changed.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <functional>

#include "weight_files.h"

namespace tc::test {
namespace {

class HostileWeights : public testing::Test {
 protected:
  HostileWeights() : f_(decoder()) {
    tc_rt_allocate(f_.model, 1, 1);
    tc_state state{};
    state.size = sizeof state;
    state.seed = 5, state.call = 6, state.step_count = 7;
    tc_rt_set_state(f_.model, &state);
    for (int i = 0; i < kBlock; ++i) {
      static_cast<float*>(tc_rt_block(f_.model, TC_BLOCK_MOMENT1))[i] = static_cast<float>(i);
    }
    before_ = f_.everything();
  }

  /// The message of a load that fails in time and leaves everything alone; "" where it does not fail.
  std::string refusal(const std::string& bytes, tc_status expected = TC_E_FORMAT) {
    write_file(path_, bytes);
    return refusal_of(path_, expected);
  }
  std::string refusal_of(const std::string& path, tc_status expected) {
    const auto start = std::chrono::steady_clock::now();
    const tc_status status = tc_rt_load(f_.model, path.c_str(), 1);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    EXPECT_LT(took.count(), 1.0);
    EXPECT_EQ(f_.everything(), before_);
    if (status == TC_OK) return "";
    EXPECT_EQ(status, expected) << tc_rt_model_message(f_.model);
    return tc_rt_model_message(f_.model);
  }

  Folder folder_;
  std::string path_ = folder_ / "w.safetensors";
  Fixture f_;
  std::vector<float> before_;
};

struct Mutation {
  const char *from, *to;  // in kHeader
  const char* message;    // part of what is said
};

const std::string kLong(3000, 'x');

// What the header says of the data, or is as JSON.
const Mutation kMutations[] = {
    // Form.
    {"{\"__metadata__\"", "[\"__metadata__\"", "byte 8, in the header: expected '{', found '['"},
    {"{\"__metadata__\"", "{\"__metadata__", "expected ':', found 'f'"},
    {"{\"__metadata__\":", "{\"__metadata__\"", "byte 23, in the header: expected ':', found '{'"},
    {"{\"format\":\"pt\"}", "{\"format\":1}", "expected a string, as all of \"__metadata__\", found '1'"},
    {"{\"format\":\"pt\"}", "[]", "expected '{', found '['"},
    {"{\"format\":\"pt\"}", "{\"format\":\"pt\",\"format\":\"pt\"}",
     "\"format\" stands twice in \"__metadata__\""},
    {"{\"format\":\"pt\"}", "{\"a\":\"b\",\"\\u0061\":\"b\"}", "\"a\" stands twice in \"__metadata__\""},
    {"{\"format\":\"pt\"},", "{\"format\":\"pt\"},,", "expected a name in quotes, found ','"},
    {"[128,148]}}", "[128,148]},}", "expected a name in quotes, found '}'"},
    {"[128,148]}}", "[128,148]}}}", "expected nothing more, found '}'"},
    {"[128,148]}}", "[128,148]}", "expected ',' or '}', found the header's end"},
    {"[128,148]}}", "[128,148", "expected ',' or ']', found the header's end"},
    {"[128,148]}}", "[128,148]}} x", "expected nothing more, found 'x'"},
    {"\"emb\":{\"dtype\"", "\"__metadata__\":{},\"emb\":{\"dtype\"", "a second \"__metadata__\""},
    {"\"emb\"", "\"e\\qmb\"", "expected an escape such as \\n or \\u00e9, found 'q'"},
    {"\"emb\"", "\"e\\u00g0\"", "expected four hexadecimal digits after \\u, found 'g'"},
    {"\"emb\"", "\"e\\ud800x\"", "expected the second half of a character"},
    {"\"emb\"", "\"e\\ud800\\u0041\"", "expected the second half of a character"},
    {"\"emb\"", "\"e\\udc00\"", "expected a character, not the second half of one"},
    {"\"emb\"", "\"e\x01mb\"", "expected an escape in place of a control character, found the byte 0x01"},
    {"\"emb\"", "\"e\xffmb\"", "expected UTF-8, found the byte 0xff"},
    {"\"emb\"", "\"e\xc0\x80\"", "expected UTF-8, found the byte 0xc0"},
    {"\"emb\"", "\"e\xed\xa0\x80\"", "expected UTF-8, found the byte 0xed"},
    {"\"emb\"", "\"e\xf4\x90\x80\x80\"", "expected UTF-8, found the byte 0xf4"},
    {"\"emb\"", "\"e\xe2\x82\"", "expected UTF-8, found the byte 0xe2"},
    {"\"emb\"", "emb", "expected a name in quotes, found 'e'"},
    {"\"emb\"", "null", "expected a name in quotes, found 'n'"},
    {"\"emb\":{", "\"emb\":null,\"x\":{", "expected '{', found 'n'"},
    // A tensor's own keys.
    {"\"dtype\":\"F32\",\"shape\":[16,1]", "\"shape\":[16,1]", "tensor \"emb\" has no dtype"},
    {"\"shape\":[16,1],", "", "tensor \"emb\" has no shape"},
    {",\"data_offsets\":[0,64]", "", "tensor \"emb\" has no data_offsets"},
    {"\"shape\":[16,1]", "\"shape\":[16,1],\"shape\":[16,1]", "tensor \"emb\" has shape twice"},
    {"\"shape\":[16,1]", "\"shape\":[16,1],\"strides\":[1,1]", "tensor \"emb\" has the key \"strides\""},
    {"\"F32\"", "\"F31\"", "tensor \"emb\" has dtype \"F31\", expected F64, F32, F16 or BF16"},
    {"\"F32\"", "\"I32\"", "tensor \"emb\" has dtype \"I32\""},
    {"\"F32\"", "\"f32\"", "tensor \"emb\" has dtype \"f32\""},
    {"\"F32\"", "32", "expected a string, found '3'"},
    {"\"F32\"", "\"F64\"", "tensor \"emb\" has 64 bytes at 0 to 64, but F64 of shape [16,1] takes 128"},
    {"\"F32\"", "\"BF16\"", "but BF16 of shape [16,1] takes 32"},
    // Shapes.
    {"[16,1]", "[16,2]", "but F32 of shape [16,2] takes 128"},
    {"[16,1]", "[1,16]", "tensor \"emb\" has shape [1,16], this model's has [16,1]"},
    {"[16,1]", "[16]", "tensor \"emb\" has shape [16], this model's has [16,1]"},
    {"[16,1]", "[16,1,1,1,1]", "tensor \"emb\" has shape [16,1,1,1,...], this model's has [16,1]"},
    {"[16,1]", "[]", "but F32 of shape [] takes 4"},
    {"[16,1]", "16", "expected '[', found '1'"},
    {"[16,1]", "[16,]", "expected an integer from 0 to 9223372036854775807, found ']'"},
    {"[16,1]", "[-16,-1]", "expected an integer from 0 to 9223372036854775807, found '-'"},
    {"[16,1]", "[16.0,1]", "expected an integer from 0 to 9223372036854775807, found '.'"},
    {"[16,1]", "[1.6e1,1]", "found '.'"},
    {"[16,1]", "[16e0,1]", "found 'e'"},
    {"[16,1]", "[016,1]", "expected no digit after a leading zero, found '1'"},
    {"[16,1]", "[NaN,1]", "expected an integer from 0 to 9223372036854775807, found 'N'"},
    {"[16,1]", "[Infinity,1]", "found 'I'"},
    {"[16,1]", "[\"16\",1]", "found '\"'"},
    {"[16,1]", "[true,1]", "found 't'"},
    {"[16,1]", "[[[[[[[[16]]]]]]]]", "expected an integer from 0 to 9223372036854775807, found '['"},
    {"[16,1]", "[9223372036854775808,1]", "the integer is larger than 9223372036854775807"},
    {"[16,1]", "[18446744073709551632,1]", "the integer is larger than 9223372036854775807"},
    {"[16,1]", "[4611686018427387904,4]", "more bytes than there can be"},
    {"[16,1]", "[4294967296,4294967296,16]", "more bytes than there can be"},
    {"[16,1]", "[4611686018427387904,16,0]", "but F32 of shape [4611686018427387904,16,0] takes 0"},
    // Places.
    {"[0,64]", "[0,63]", "tensor \"emb\" has 63 bytes at 0 to 63"},
    {"[0,64]", "[64,0]", "tensor \"emb\" begins at 64 and ends before it, at 0"},
    {"[0,64]", "[-64,0]", "found '-'"},
    {"[0,64]", "[0]", "data_offsets has one number, expected two"},
    {"[0,64]", "[0,64,64]", "data_offsets has more than two numbers"},
    {"[0,64]", "[]", "expected an integer"},
    {"[0,64]", "[0.0,64]", "found '.'"},
    {"[0,64]", "[4,68]", "no tensor has the bytes 0 to 4, before \"emb\""},
    {"[64,128]", "[60,124]", "tensor \"bias\" begins at 60, inside \"emb\", which ends at 64"},
    {"[64,128]", "[0,64]", "tensor \"bias\" begins at 0, inside \"emb\", which ends at 64"},
    {"[128,148]", "[132,152]", "tensor \"frozen\" ends at 152, but only 148 bytes follow the header"},
    {"[128,148]", "[9223372036854775787,9223372036854775807]", "but only 148 bytes follow the header"},
    // Names.
    {"\"bias\":{", "\"emb\":{", "tensor \"emb\" stands twice in the header"},
    {"\"bias\":{", "\"e\\u006db\":{", "tensor \"emb\" stands twice in the header"},
    {"\"bias\":{", "\"Bias\":{",
     "it lacks 1 of this model's tensors: bias; and has 1 that this model has not: Bias"},
    {"\"bias\":{", "\"bias\\u0000\":{", "this model has not: bias\\x00"},
    {"\"bias\":{", "\"\\u2028\xf0\x9f\x98\x80\":{",
     "this model has not: \\xe2\\x80\\xa8\\xf0\\x9f\\x98\\x80"},
    {"\"bias\":{", "\"\":{", "it lacks 1 of this model's tensors: bias; and has 1"},
    // Texts that count.
    {"\"format\":\"pt\"", "\"seed\":\"1\"", "some of seed, call and step_count, expected all or none"},
    {"\"format\":\"pt\"", "\"seed\":\"-1\",\"call\":\"0\",\"step_count\":\"0\"",
     "\"seed\" in \"__metadata__\" is \"-1\""},
    {"\"format\":\"pt\"", "\"seed\":\"18446744073709551616\"", "expected an integer of 0 to 2^64 - 1"},
    {"\"format\":\"pt\"", "\"seed\":\"\"", "\"seed\" in \"__metadata__\" is \"\""},
    {"\"format\":\"pt\"", "\"seed\":\"1 \"", "\"seed\" in \"__metadata__\" is \"1 \""},
    {"\"format\":\"pt\"", "\"architecture\":\"a = 1\\n\",\"architecture_hash\":\"0\"",
     "is not that of its \"architecture\""},
};

TEST_F(HostileWeights, SayWhatIsWrong) {
  for (const Mutation& mutation : kMutations) {
    const std::string message = refusal(weights(replaced(kHeader, mutation.from, mutation.to), data()));
    EXPECT_NE(message.find(mutation.message), std::string::npos) << mutation.to << "\n" << message;
    EXPECT_EQ(message.find(folder_ / "w.safetensors: "), 0u) << message;
  }
}

TEST_F(HostileWeights, LongNamesAreCutShort) {
  std::string header = replaced(kHeader, "\"bias\"", '"' + kLong + '"');
  std::string message = refusal(weights(header, data()));
  EXPECT_NE(message.find(kLong.substr(0, 80) + "..."), std::string::npos) << message;
  EXPECT_LT(message.size(), 400u);
  std::string many = "{";
  for (int i = 0; i < 5000; ++i) {
    many += (i ? ",\"" : "\"") + std::to_string(i) +
            "\":{\"dtype\":\"F16\",\"shape\":[0],\"data_offsets\":[0,0]}";
  }
  message = refusal(weights(many + "}", ""));
  EXPECT_NE(
      message.find("it lacks 3 of this model's tensors: emb, bias, frozen; and has 5000 that this model has "
                   "not: 0, 1, 2, 3, 4, 5, 6, 7 and 4992 more"),
      std::string::npos)
      << message;
}

TEST_F(HostileWeights, LengthsThatAreNone) {
  const std::string good = weights(kHeader, data());
  for (uint64_t length :
       {uint64_t{0}, uint64_t{1}, uint64_t{1} << 24, uint64_t{1} << 25, (uint64_t{1} << 25) + 1,
        uint64_t{1} << 32, uint64_t{1} << 63, ~uint64_t{0}, ~uint64_t{7}}) {
    std::string bytes = good;
    bytes.replace(0, 8, reinterpret_cast<const char*>(&length), 8);
    EXPECT_NE(refusal(bytes), "") << length;
  }
}

TEST_F(HostileWeights, CutOffAnywhere) {
  const std::string good = weights(kHeader, data());
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_NE(refusal(good.substr(0, size)), "") << size;
  }
  EXPECT_NE(
      refusal(good + "x").find("the tensors end at byte 148 behind the header, but 149 bytes follow it"),
      std::string::npos);
}

TEST_F(HostileWeights, EveryByteOfTheHeaderChanged) {
  const std::string good = weights(kHeader, data());
  const size_t end = good.size() - data().size();
  for (size_t at = 0; at < end; ++at) {
    for (int change : {0x01, 0x20, 0x80}) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ change);
      write_file(path_, bytes);
      const tc_status status = tc_rt_load(f_.model, path_.c_str(), 1);
      if (status != TC_OK) {
        EXPECT_EQ(f_.everything(), before_) << at;
      } else {  // a text that nobody reads
        before_ = f_.everything();
      }
    }
  }
}

TEST_F(HostileWeights, DeepAndLongTexts) {
  for (const std::string& nest :
       {std::string(100000, '['), std::string(100000, '{'), "{\"a\":" + std::string(1 << 20, '[')}) {
    EXPECT_NE(refusal(weights(nest, "")), "");
  }
  std::string keys = "{\"__metadata__\":{";
  for (int i = 0; i < 300; ++i) keys += (i ? ",\"" : "\"") + std::to_string(i) + "\":\"\"";
  EXPECT_NE(refusal(weights(keys + "}}", "")).find("\"__metadata__\" has more than 256 entries"),
            std::string::npos);
  const std::string architecture(2 << 20, 'a');
  EXPECT_NE(refusal(weights("{\"__metadata__\":{\"architecture\":\"" + architecture + "\"}}", ""))
                .find("\"architecture\" in \"__metadata__\" has more than 1048576 bytes"),
            std::string::npos);
  std::string dimensions = "[1";
  for (int i = 0; i < 100000; ++i) dimensions += ",1";
  EXPECT_NE(refusal(weights(replaced(kHeader, "[16,1]", dimensions + "]"), data())), "");
}

TEST_F(HostileWeights, WhatIsNoFile) {
  EXPECT_NE(refusal_of(folder_ / "none", TC_E_FILE).find("No such file or directory"), std::string::npos);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_NE(refusal_of(folder_ / ".", TC_E_FILE).find("it is a folder, not a file"), std::string::npos);
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_NE(refusal_of(folder_ / "pipe", TC_E_FILE).find("it is a pipe, not a file"), std::string::npos);
  EXPECT_NE(refusal_of("/dev/zero", TC_E_FILE).find("it is a device, not a file"), std::string::npos);
  EXPECT_NE(refusal_of("", TC_E_FILE), "");
  ASSERT_EQ(symlink("loop", (folder_ / "loop").c_str()), 0);
  EXPECT_NE(refusal_of(folder_ / "loop", TC_E_FILE), "");
  EXPECT_NE(refusal_of(folder_ / kLong, TC_E_FILE).find("File name too long"), std::string::npos);
  write_file(path_, weights(kHeader, data()));
  chmod(path_.c_str(), 0);
  if (access(path_.c_str(), R_OK) != 0) {  // not root
    EXPECT_NE(refusal_of(path_, TC_E_FILE).find("Permission denied"), std::string::npos);
  }
  EXPECT_EQ(tc_rt_load(f_.model, nullptr, 1), TC_E_ARGUMENT);
  EXPECT_EQ(tc_rt_load(nullptr, "x", 1), TC_E_ARGUMENT);
}

TEST_F(HostileWeights, ASparseFileOfATerabyteIsRefusedAtOnce) {
  const std::string header = replaced(kHeader, "[128,148]", "[128,1099511627776]");
  write_file(path_, weights(replaced(header, "[5]", "[274877906912]"), ""));
  if (truncate(path_.c_str(), static_cast<off_t>(8 + 1099511627776 + 256)) != 0)
    GTEST_SKIP() << "no such files here";
  EXPECT_NE(
      refusal_of(path_, TC_E_FORMAT).find("tensor \"frozen\" has shape [274877906912], this model's has [5]"),
      std::string::npos);
}

TEST_F(HostileWeights, MomentsThatDoNotFit) {
  const std::string moment =
      R"(,"optimizer.moment1.bias":{"dtype":"F32","shape":[16],"data_offsets":[148,212]})";
  const std::string other =
      R"(,"optimizer.moment2.bias":{"dtype":"F32","shape":[16],"data_offsets":[212,276]})";
  const std::string state = R"("seed":"1","call":"2","step_count":"3")";
  const std::string stem = replaced(kHeader, "[128,148]}}", "[128,148]}");
  const auto with = [&](const std::string& more, const std::string& metadata, size_t bytes) {
    return refusal(
        weights(replaced(stem, R"("format":"pt")", metadata) + more + "}", data() + std::string(bytes, 0)));
  };
  EXPECT_NE(
      with(moment + other, R"("format":"pt")", 128).find("it has an optimizer's moments, but no step_count"),
      std::string::npos);
  EXPECT_NE(with(moment, state, 64).find("it has optimizer.moment1.bias, but not optimizer.moment2.bias"),
            std::string::npos);
  EXPECT_NE(with(replaced(moment, "moment1", "moment3"), state, 64).find("has not: optimizer.moment3.bias"),
            std::string::npos);
  EXPECT_NE(with(replaced(moment, "[16]", "[4,4]") + other, state, 128)
                .find("tensor \"optimizer.moment1.bias\" has shape [4,4], this model's has [16]"),
            std::string::npos);
}

}  // namespace
}  // namespace tc::test
