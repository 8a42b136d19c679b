// plateau bench and plateau report as a user runs them: lines, table, failures, interruption.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>

#include "cli/plateau_process.h"

namespace plateau::cli::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> bench(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {"bench", "-m", pico_text(), "-t", "1", "--decode", "2"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

TEST(Bench, AFingerprintThenALinePerPointAndATable) {
  const Finished finished =
      plateau(bench({"--tokens", "64,600", "--kv-budget", "full,256", "--repeats", "1"}));
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  const auto lines = json_lines(finished.out);
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0]["type"], "fingerprint");
  EXPECT_EQ(lines[0]["model"]["file"], "pico-internvl-text.gguf");
  for (size_t i = 1; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i]["run"], lines[0]["run"]);
    EXPECT_EQ(lines[i]["kv_bytes"], lines[i]["kv_bytes_planned"]);
    EXPECT_TRUE(lines[i]["isolated"]);
    EXPECT_GT(lines[i]["peak_anon_bytes"], lines[i]["kv_bytes"]);
  }
  EXPECT_EQ(lines[1]["visual_tokens"], 64);
  EXPECT_EQ(lines[1]["kv_budget"], "full");
  EXPECT_EQ(lines[4]["visual_tokens"], 600);
  EXPECT_EQ(lines[4]["kept_tokens"], 256);
  EXPECT_THAT(finished.err, HasSubstr("TTFT s"));
  EXPECT_THAT(finished.err, HasSubstr("600     256 snapkv"));
}

TEST(Bench, IsolationChangesNoCount) {
  const auto counts = [](const std::string& flag) {
    const Finished finished =
        plateau(bench({"--tokens", "300", "--kv-budget", "128", "--repeats", "1", "-q", flag}));
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_THAT(finished.err, IsEmpty());
    const json line = json_lines(finished.out).at(1);
    EXPECT_EQ(line["isolated"], flag == "--isolate");
    return std::vector<json>{line["kv_bytes"], line["kept_tokens"], line["compute_bytes"],
                             line["blocks"]};
  };
  EXPECT_EQ(counts("--isolate"), counts("--no-isolate"));
}

TEST(Bench, AgainstLlamaCpp) {
  const Finished finished =
      plateau(bench({"--tokens", "300", "--repeats", "2", "--against", "llama.cpp"}));
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  const json line = json_lines(finished.out).at(1);
  EXPECT_GT(line["speedup"]["ttft"]["median"], 0);
  EXPECT_GT(line["llama_cpp"]["ttft_ms"]["min"], 0);
  EXPECT_EQ(line["llama_cpp"]["ubatch"], line["largest_block"]);
}

TEST(Bench, AFailedPointIsRecordedAndTheOthersGoOn) {
  for (const char* flag : {"--isolate", "--no-isolate"}) {
    const Finished finished =
        plateau(bench({"--tokens", "300", "--kv-budget", "10,128", "--repeats", "1", flag}));
    EXPECT_EQ(finished.exit_code, 2);
    const auto lines = json_lines(finished.out);
    ASSERT_EQ(lines.size(), 3u);
    EXPECT_THAT(lines[1]["error"].get<std::string>(), HasSubstr("[--kv-budget] expected at least"));
    EXPECT_FALSE(lines[2].contains("error"));
    EXPECT_THAT(finished.err, HasSubstr("[--kv-budget] expected at least"));
  }
}

TEST(Bench, AppendsToItsFile) {
  const TempDir dir;
  for (int i = 0; i < 2; ++i) {
    const Finished finished =
        plateau(bench({"--tokens", "64", "--repeats", "1", "--out", dir.file("b.jsonl")}));
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_THAT(finished.out, IsEmpty());
  }
  EXPECT_EQ(json_lines(media::testing::read_file(dir.file("b.jsonl"))).size(), 4u);
}

TEST(Bench, AnIncompleteLastLineIsNotContinued) {
  const TempDir dir;
  std::ofstream(dir.file("b.jsonl")) << "{\"type\":\"fingerp";
  EXPECT_EQ(
      plateau(bench({"--tokens", "64", "--repeats", "1", "--out", dir.file("b.jsonl")})).exit_code,
      0);
  const std::string text = media::testing::read_file(dir.file("b.jsonl"));
  EXPECT_EQ(json_lines(text.substr(text.find('\n') + 1)).size(), 2u);
}

TEST(Bench, AnotherFileIsLeftAlone) {
  const TempDir dir;
  for (const std::string text :
       {"my diary\n", "my diary", "\n", "{\"type\":\"header\"}\n", "[]\n"}) {
    const std::string path = dir.write("other", text);
    const Finished finished = plateau(bench({"--tokens", "64", "--repeats", "1", "--out", path}));
    EXPECT_EQ(finished.exit_code, 2) << text;
    EXPECT_THAT(finished.err, HasSubstr("expected an empty file or one that begins with"));
    EXPECT_EQ(media::testing::read_file(path), text);
  }
}

TEST(Bench, AFullDiskIsAnError) {
  const Finished finished = plateau(bench({"--tokens", "64", "--out", "/dev/full"}));
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_THAT(finished.err, HasSubstr("[/dev/full] cannot be written: No space left"));
}

TEST(Bench, FramesGoThroughTheEncoder) {
  const Finished finished = plateau(bench(
      {"--mmproj", pico_mmproj(), "--frames", "3,20", "--kv-budget", "full,40", "--repeats", "1"}));
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  const auto lines = json_lines(finished.out);
  ASSERT_EQ(lines.size(), 5u);
  for (size_t i = 1; i < lines.size(); ++i) {
    const json& line = lines[i];
    EXPECT_EQ(line["input"], "frames");
    EXPECT_EQ(line["visual_tokens"], line["n_input"].get<int>() * 4);
    EXPECT_EQ(line["prompt_tokens"], line["visual_tokens"].get<int>() + 48);
    EXPECT_EQ(line["kv_bytes"], line["kv_bytes_planned"]);
    EXPECT_GT(line["encode_ms"]["median"], 0);
    EXPECT_GE(line["peak_anon_bytes_planned"], line["peak_anon_bytes"]);
  }
  EXPECT_EQ(plateau(bench({"--frames", "3"})).exit_code, 2);  // no projector
}

TEST(Bench, AnInterruptionKeepsWhatIsFinished) {
  const TempDir dir;
  const Finished finished = plateau(bench({"--tokens", "64,400000", "--kv-budget", "256",
                                           "--repeats", "1", "--out", dir.file("b.jsonl")}),
                                    {.interrupt_after = "      64     256"});
  EXPECT_EQ(finished.exit_code, 130) << finished.err;
  const auto lines = json_lines(media::testing::read_file(dir.file("b.jsonl")));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1]["visual_tokens"], 64);
}

TEST(Bench, OptionsThatAreWrong) {
  const auto error = [](const std::vector<std::string>& arguments) {
    const Finished finished = plateau(arguments);
    EXPECT_EQ(finished.exit_code, 2);
    EXPECT_THAT(finished.out, IsEmpty());
    return finished.err;
  };
  EXPECT_THAT(error({"bench"}), HasSubstr("--shape 0.5b"));
  EXPECT_THAT(error({"bench", "--shape", "0.6b"}), HasSubstr("did you mean 0.5b?"));
  EXPECT_THAT(error(bench({"--policy", "snapkw"})), HasSubstr("snapkv"));
  EXPECT_THAT(error(bench({"--tokens", "0"})), HasSubstr("--tokens"));
  EXPECT_THAT(error(bench({"--kv-budget", "0"})), HasSubstr("--kv-budget"));
  EXPECT_THAT(error(bench({"--block", "big"})), HasSubstr("--block"));
  EXPECT_THAT(error(bench({"--against", "vllm"})), HasSubstr("--against"));
  EXPECT_THAT(error(bench({"-ngl", "-7"})), HasSubstr("-1 or a number of layers"));
  EXPECT_THAT(error(bench({"--frames", "3", "--frame-size", "9"})), HasSubstr("--frame-size"));
  EXPECT_THAT(error(bench({"--frames", "0"})), HasSubstr("--frames"));
  EXPECT_THAT(error(bench({"--frames", "3", "--tiles", "3"})), HasSubstr("--tiles"));
  EXPECT_THAT(error(bench({"--repeats", "0"})), HasSubstr("--repeats"));
  EXPECT_THAT(error(bench({"--out", pico_text()})), HasSubstr("which is read"));
}

TEST(Bench, AModelThatIsNotThere) {
  EXPECT_EQ(plateau({"bench", "-m", "/nonexistent.gguf"}).exit_code, 3);
}

TEST(Report, OnePageOfBenchLines) {
  const TempDir dir;
  EXPECT_EQ(plateau(bench({"--tokens", "64,300", "--kv-budget", "full,128", "--repeats", "1",
                           "--profile", "-q", "--out", dir.file("b.jsonl")}))
                .exit_code,
            0);
  const Finished finished =
      plateau({"report", "--out", dir.file("r.html"), dir.file("b.jsonl"), "--title", "A & B"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  const std::string html = media::testing::read_file(dir.file("r.html"));
  EXPECT_THAT(html, HasSubstr("<h1>A &amp; B</h1>"));
  for (const char* id : {"memory", "cache", "ttft", "decode", "profile"}) {
    EXPECT_THAT(html, HasSubstr("<section id=\"" + std::string(id) + "\">"));
  }
  EXPECT_THAT(html, HasSubstr("pico-internvl-text.gguf"));
}

TEST(Report, BadFilesAreRefusedWithTheLine) {
  const TempDir dir;
  std::ofstream(dir.file("bad.jsonl")) << "{\"type\": \"header\"\n";
  std::ofstream(dir.file("empty.jsonl"));
  const auto error = [&](const std::string& file) {
    const Finished finished = plateau({"report", "--out", dir.file("r.html"), dir.file(file)});
    EXPECT_EQ(finished.exit_code, 3);
    return finished.err;
  };
  EXPECT_THAT(error("bad.jsonl"), HasSubstr("bad.jsonl:1]"));
  EXPECT_THAT(error("empty.jsonl"), HasSubstr("empty"));
  EXPECT_THAT(error("none.jsonl"), HasSubstr("none.jsonl"));
  struct stat status = {};
  EXPECT_NE(stat(dir.file("r.html").c_str(), &status), 0);
}

TEST(Report, NeverOverwritesAnInput) {
  const TempDir dir;
  std::ofstream(dir.file("b.jsonl")) << "{}\n";
  EXPECT_EQ(plateau({"report", "--out", dir.file("b.jsonl"), dir.file("b.jsonl")}).exit_code, 2);
  EXPECT_EQ(plateau({"report", "--out", dir.file("r.html")}).exit_code, 2);
}

}  // namespace
}  // namespace plateau::cli::testing
