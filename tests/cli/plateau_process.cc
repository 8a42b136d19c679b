#include "cli/plateau_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <sstream>

extern char** environ;

namespace plateau::cli::testing {
namespace {

struct Pipe {
  int read_end = -1;
  int write_end = -1;

  Pipe() {
    std::array<int, 2> ends = {};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
    read_end = ends[0];
    write_end = ends[1];
  }
  ~Pipe() {
    close_end(read_end);
    close_end(write_end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  static void close_end(int& end) {
    if (end >= 0) close(end);
    end = -1;
  }
};

/// Appends what is there; false at the end of the stream.
bool read_some(int fd, std::string& text) {
  std::array<char, 1 << 14> buffer;
  const ssize_t n = read(fd, buffer.data(), buffer.size());
  if (n > 0) text.append(buffer.data(), static_cast<size_t>(n));
  return n > 0;
}

void read_all(Pipe& out, Pipe& err, pid_t pid, const std::string& interrupt_after,
              Finished& result) {
  std::array<pollfd, 2> polled = {{{out.read_end, POLLIN, 0}, {err.read_end, POLLIN, 0}}};
  bool to_interrupt = !interrupt_after.empty();
  while (polled[0].fd >= 0 || polled[1].fd >= 0) {
    poll(polled.data(), polled.size(), -1);
    if (polled[0].revents != 0 && !read_some(polled[0].fd, result.out)) polled[0].fd = -1;
    if (polled[1].revents != 0 && !read_some(polled[1].fd, result.err)) polled[1].fd = -1;
    if (to_interrupt && result.err.find(interrupt_after) != std::string::npos) {
      kill(pid, SIGINT);
      to_interrupt = false;
    }
  }
}

}  // namespace

Finished plateau(const std::vector<std::string>& arguments, const StartOptions& options) {
  std::vector<std::string> words = {PLATEAU_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  Pipe in;
  Pipe out;
  Pipe err;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.read_end, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.write_end, STDOUT_FILENO);
  if (options.err_path.empty()) {
    posix_spawn_file_actions_adddup2(&actions, err.write_end, STDERR_FILENO);
  } else if (options.err_path == "closed") {
    posix_spawn_file_actions_addclose(&actions, STDERR_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, options.err_path.c_str(), O_WRONLY,
                                     0);
  }
  pid_t pid = 0;
  const int spawned = posix_spawn(&pid, PLATEAU_PROGRAM, &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (spawned != 0) throw std::runtime_error("posix_spawn " PLATEAU_PROGRAM);
  Pipe::close_end(in.read_end);
  Pipe::close_end(out.write_end);
  Pipe::close_end(err.write_end);
  // Small enough for a pipe's buffer, so this cannot block.
  EXPECT_EQ(write(in.write_end, options.input.data(), options.input.size()),
            static_cast<ssize_t>(options.input.size()));
  Pipe::close_end(in.write_end);

  Finished result;
  read_all(out, err, pid, options.interrupt_after, result);
  int status = 0;
  rusage usage = {};
  wait4(pid, &status, 0, &usage);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.peak_rss_bytes = int64_t{usage.ru_maxrss} * 1024;
  return result;
}

std::string pico_text(const std::string& family) {
  return PLATEAU_PICO_DIR "/pico-" + family + "-text.gguf";
}

std::string pico_mmproj(const std::string& family) {
  return PLATEAU_PICO_DIR "/pico-" + family + "-mmproj.gguf";
}

std::vector<nlohmann::json> json_lines(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

std::vector<std::string> pico_run(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {"run", "-m", pico_text(), "--mmproj", pico_mmproj(), "-t", "1"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

nlohmann::json stats_of(const std::vector<std::string>& arguments, const StartOptions& options) {
  const TempDir dir;
  std::vector<std::string> words = pico_run(arguments);
  words.insert(words.end(), {"--stats-json", dir.file("stats.json")});
  const Finished finished = plateau(words, options);
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  if (finished.exit_code != 0) return nlohmann::json::object();
  return nlohmann::json::parse(media::testing::read_file(dir.file("stats.json")));
}

Needle make_needle(const TempDir& dir, int width, int height, int seed) {
  const Finished made =
      plateau({"needle", "--out", dir.path(), "--width", std::to_string(width), "--height",
               std::to_string(height), "--seed", std::to_string(seed), "--format", "png"});
  EXPECT_EQ(made.exit_code, 0) << made.err;
  const auto item = nlohmann::json::parse(media::testing::read_file(dir.file("set.jsonl")));
  return {dir.file(item.at("image")), item.at("question"), item.at("answer")};
}

}  // namespace plateau::cli::testing
