// The built program on files: options, formats, exit codes (2: usage, 3: an input file).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "arrays/array_bytes.h"
#include "support/temp_dir.h"

namespace plateau {
namespace {

using arrays::testing::bytes_of;
using arrays::testing::npy;
using arrays::testing::npy_f32;
using arrays::testing::npy_header;
using arrays::testing::safetensors;
using ::testing::HasSubstr;
using Json = nlohmann::json;

struct Outcome {
  int exit_code = -1;
  std::string out;
  std::string err;
};

class EvictCommand : public ::testing::Test {
 protected:
  EvictCommand() {
    // Two kv heads, six keys of two numbers; four query heads, one query each.
    write("K.npy", npy_f32("(2, 6, 2)", kKeys));
    write("V.npy", npy_f32("(2, 6, 2)", kValues));
    write("Q.npy", npy_f32("(4, 1, 2)", {4, 0, 4, 0, 0, 4, 0, 4}));
    write("P.npy", npy(npy_header("<i8", "(6, 3)"),
                       bytes_of<int64_t>({0, 0, 0, 0, 0, 1, 0, 0, 2, 0, 1, 0, 0, 1, 1, 0, 1, 2})));
  }

  void write(const std::string& name, const std::string& bytes) {
    arrays::testing::write_file(dir_.file(name), bytes);
  }
  std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(dir_.file(name), std::ios::binary).rdbuf();
    return text.str();
  }

  /// Runs `plateau evict` in the folder of the files.
  Outcome evict(const std::string& arguments) const {
    const std::string command = "cd '" + dir_.path() + "' && '" PLATEAU_BINARY "' evict " +
                                arguments + " >out.txt 2>err.txt";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read("out.txt"), read("err.txt")};
  }

  Json json(const std::string& arguments) const {
    const Outcome outcome = evict(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return Json::parse(outcome.out);
  }

  void expect_refused(int exit_code, const std::string& part, const std::string& arguments) const {
    const Outcome outcome = evict(arguments);
    EXPECT_EQ(outcome.exit_code, exit_code) << arguments << ": " << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(part)) << arguments;
    EXPECT_EQ(outcome.out, "") << arguments;
  }

  const std::vector<float> kKeys = {1, 0, 0, 1, 2, 0, 0, 2, 3, 0, 0, 0,    //
                                    1, 0, 0, 1, 2, 0, 0, 2, 3, 0, 0, 3};   //
  const std::vector<float> kValues = {6, 0, 0, 5, 4, 0, 3, 0, 0, 2, 1, 0,  //
                                      1, 0, 2, 0, 0, 3, 4, 0, 5, 0, 0, 6};

 private:
  test::TempDir dir_;
};

TEST_F(EvictCommand, WritesWhatIsKept) {
  const Json snapkv = json("--keys K.npy --queries Q.npy --pool none --budget 2");
  EXPECT_EQ(snapkv, Json::parse(R"({"policy": "snapkv", "budget": 2, "kept": [[2,4],[3,5]]})"));
  EXPECT_EQ(json("--keys K.npy --values V.npy --policy value-norm --budget 2")["kept"],
            Json::parse("[[0,1],[4,5]]"));
  EXPECT_EQ(json("--keys K.npy --policy sink-recent --budget 3 --sinks 1")["kept"],
            Json::parse("[[0,4,5],[0,4,5]]"));
  EXPECT_EQ(json("--keys K.npy --values V.npy --policy value-norm --budget 2 --recent 1 --block 2")
                ["kept"],
            Json::parse("[[0,5],[4,5]]"));
  EXPECT_EQ(json("--keys K.npy --policy full"),
            Json::parse(R"({"policy": "full", "budget": null, "kept":
                            [[0,1,2,3,4,5],[0,1,2,3,4,5]]})"));
  EXPECT_EQ(json("--keys K.npy --policy keydiff --budget 9")["kept"][0].size(), 6u);
  EXPECT_EQ(json("--keys K.npy --queries Q.npy --positions P.npy --pool-axis grid --kernel 3 "
                 "--pool max --group max --budget 4 -t 1")["kept"][1]
                .size(),
            4u);
}

TEST_F(EvictCommand, WritesScores) {
  const Json all = json("--keys K.npy --values V.npy --policy value-norm --budget 6 --scores");
  EXPECT_EQ(all["scores"], Json::parse("[[6,5,4,3,2,1],[1,2,3,4,5,6]]"));
  const Json last =
      json("--keys K.npy --values V.npy --policy value-norm --budget 2 --block 3 --scores");
  EXPECT_EQ(last["scores"], Json::parse("[[6,5,null,3,2,1],[null,2,3,4,5,6]]"));
  EXPECT_EQ(json("--keys K.npy --policy full --scores")["scores"][1][5], nullptr);
}

TEST_F(EvictCommand, WritesToAFile) {
  const Outcome outcome = evict("--keys K.npy --policy keydiff --budget 2 --out kept.json");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(Json::parse(read("kept.json"))["budget"], 2);
  expect_refused(1, "missing/kept.json",
                 "--keys K.npy --policy keydiff --budget 2 --out missing/kept.json");
}

TEST_F(EvictCommand, ReadsHalfPrecisionAndSafetensors) {
  std::vector<uint16_t> halves;
  std::vector<uint16_t> bfloats;
  for (const float key : kKeys) {
    const uint16_t half[] = {0, 0x3C00, 0x4000, 0x4200};  // 0, 1, 2, 3
    const uint16_t bfloat[] = {0, 0x3F80, 0x4000, 0x4040};
    halves.push_back(half[static_cast<size_t>(key)]);
    bfloats.push_back(bfloat[static_cast<size_t>(key)]);
  }
  write("K16.npy", npy(npy_header("<f2", "(2, 6, 2)"), bytes_of(halves), 2));
  write("K.safetensors",
        safetensors(R"({"anything":{"dtype":"BF16","shape":[2,6,2],"data_offsets":[0,48]}})",
                    bytes_of(bfloats)));
  write("all.safetensors",
        safetensors(R"({"keys":{"dtype":"F16","shape":[2,6,2],"data_offsets":[0,48]},)"
                    R"("queries":{"dtype":"F32","shape":[4,1,2],"data_offsets":[48,80]},)"
                    R"("values":{"dtype":"F32","shape":[2,6,2],"data_offsets":[80,176]},)"
                    R"("positions":{"dtype":"I32","shape":[6,3],"data_offsets":[176,248]}})",
                    bytes_of(halves) + bytes_of<float>({4, 0, 4, 0, 0, 4, 0, 4}) +
                        bytes_of(kValues) + bytes_of(std::vector<int32_t>(18, 0))));
  const Json expected = json("--keys K.npy --queries Q.npy --budget 2 --scores");
  EXPECT_EQ(json("--keys K16.npy --queries Q.npy --budget 2 --scores"), expected);
  EXPECT_EQ(json("--keys K.safetensors --queries Q.npy --budget 2 --scores"), expected);
  EXPECT_EQ(json("--in all.safetensors --budget 2 --scores"), expected);
  // A file of its own comes first.
  EXPECT_EQ(json("--in all.safetensors --keys K.npy --budget 2 --scores"), expected);
  EXPECT_EQ(json("--in all.safetensors --budget 2 --policy mix")["kept"],
            json("--keys K.npy --queries Q.npy --values V.npy --budget 2 --policy mix")["kept"]);
  expect_refused(2, "expected one tensor", "--keys all.safetensors --budget 2 --policy keydiff");
  expect_refused(2, "named keys", "--in K.safetensors --budget 2 --policy keydiff");
  expect_refused(2, "named keys", "--in K.npy --budget 2 --policy keydiff");
}

TEST_F(EvictCommand, RefusesOptionsThatMakeNoSense) {
  const std::string keys = "--keys K.npy ";
  expect_refused(2, "--budget", keys + "--policy keydiff");
  expect_refused(2, "--budget", keys + "--policy keydiff --budget 0");
  expect_refused(2, "--budget", keys + "--policy keydiff --budget -1");
  expect_refused(2, "--budget", keys + "--policy keydiff --budget many");
  expect_refused(2, "--budget", keys + "--policy full --budget 0");
  expect_refused(2, "the 5 keys", keys + "--policy keydiff --budget 4 --sinks 2 --recent 3");
  expect_refused(2, "the 5 keys", keys + "--policy keydiff --budget 4 --sinks 5");
  expect_refused(2, "--sinks", keys + "--policy keydiff --budget 4 --sinks -1");
  expect_refused(2, "--recent", keys + "--policy keydiff --budget 4 --recent -1");
  expect_refused(2, "--block", keys + "--policy keydiff --budget 4 --block -1");
  expect_refused(2, "did you mean keydiff", keys + "--policy keydif --budget 4");
  expect_refused(2, "--kernel", keys + "--policy keydiff --budget 4 --kernel 4");
  expect_refused(2, "--pool", keys + "--policy keydiff --budget 4 --pool median");
  expect_refused(2, "--window", keys + "--policy keydiff --budget 4 --window 8");
  expect_refused(2, "--positions", keys + "--queries Q.npy --budget 4 --pool-axis grid");
  expect_refused(2, "--queries", keys + "--budget 4");
  expect_refused(2, "--values", keys + "--queries Q.npy --policy mix --budget 4");
  expect_refused(2, "--keys", "--policy keydiff --budget 4");
}

TEST_F(EvictCommand, RefusesShapesThatDoNotFit) {
  const auto expect = [&](const char* name, const std::string& shape, size_t n,
                          const std::string& option, const std::string& part) {
    write(name, npy_f32(shape, std::vector<float>(n, 1)));
    const std::string keys = option == "--keys" ? "" : "--keys K.npy ";
    expect_refused(3, part, keys + "--policy keydiff --budget 2 " + option + " " + name);
    expect_refused(3, name, keys + "--policy keydiff --budget 2 " + option + " " + name);
  };
  expect("a.npy", "(12, 2)", 24, "--keys", "[12, 2]");
  expect("a.npy", "(1, 2, 6, 2)", 24, "--keys", "[1, 2, 6, 2]");
  expect("a.npy", "(2, 0, 2)", 0, "--keys", "[2, 0, 2]");
  expect("a.npy", "(0, 6, 2)", 0, "--keys", "[0, 6, 2]");
  expect("a.npy", "(3, 1, 2)", 6, "--queries", "a multiple of 2");
  expect("a.npy", "(1, 1, 2)", 2, "--queries", "a multiple of 2");
  expect("a.npy", "(4, 0, 2)", 0, "--queries", "[4, 0, 2]");
  expect("a.npy", "(2, 1025, 2)", 4100, "--queries", "1 to 1024");
  expect("a.npy", "(4, 1, 3)", 12, "--queries", "[4, 1, 3]");
  expect("a.npy", "(4, 2)", 8, "--queries", "[4, 2]");
  expect("a.npy", "(2, 5, 2)", 20, "--values", "[2, 6, 2]");
  expect("a.npy", "(1, 6, 2)", 12, "--values", "[1, 6, 2]");
  expect("a.npy", "(5, 3)", 15, "--positions", "[6, 3]");
  expect("a.npy", "(6, 2)", 12, "--positions", "[6, 2]");
}

TEST_F(EvictCommand, RefusesDamagedFiles) {
  const auto expect = [&](const std::string& bytes, const std::string& part) {
    write("bad", bytes);
    expect_refused(3, part, "--policy keydiff --budget 2 --keys bad");
    expect_refused(3, "[bad]", "--policy keydiff --budget 2 --keys bad");
  };
  const std::string good = npy_f32("(2, 6, 2)", kKeys);
  expect(good.substr(0, good.size() - 1), "[2, 6, 2]");
  expect("", "empty");
  expect("not an array", "another format");
  expect(npy(npy_header(">f4", "(2, 6, 2)"), bytes_of(kKeys)), "little-endian");
  expect(npy(npy_header("<f4", "(2, 6, 2)", /*is_fortran=*/true), bytes_of(kKeys)), "C order");
  expect(npy(npy_header("|O", "(2,)"), "12345678"), "objects");
  expect(npy(npy_header("<f8", "(1, 1, 1)"), std::string(8, '\0')), "f32");
  expect(safetensors("{}", "x"), "fill the file");
  expect_refused(3, "nowhere.npy", "--policy keydiff --budget 2 --keys nowhere.npy");
}

TEST_F(EvictCommand, RefusesNumbersThatAreNone) {
  const auto expect = [&](const std::string& option, const std::string& shape,
                          std::vector<float> values, size_t at, float number,
                          const std::string& part) {
    values[at] = number;
    write("bad.npy", npy_f32(shape, values));
    const std::string keys = option == "--keys" ? "" : "--keys K.npy ";
    expect_refused(3, part, keys + "--policy keydiff --budget 2 " + option + " bad.npy");
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  expect("--keys", "(2, 6, 2)", kKeys, 15, nan, "keys, got nan at [1, 1, 1]");
  expect("--values", "(2, 6, 2)", kValues, 4, -infinity, "values, got -inf at [0, 2, 0]");
  expect("--queries", "(4, 1, 2)", std::vector<float>(8, 1), 7, infinity,
         "queries, got inf at [3, 0, 1]");
  expect("--positions", "(6, 3)", std::vector<float>(18, 1), 4, nan, "row 1");
  expect("--positions", "(6, 3)", std::vector<float>(18, 1), 17, 0.5f, "row 5");
}

}  // namespace
}  // namespace plateau
