#include "bench/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>

#include "base/check.h"

extern char** environ;

namespace plateau::bench {
namespace {

constexpr int kPollMs = 200;

/// Both ends are closed on exec; the child gets a duplicate of one.
class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) {
      throw_error(ErrorCode::kUnavailable, "[bench] expected a pipe, got: {}",
                  std::strerror(errno));
    }
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  void close_write_end() { close_end(1); }

 private:
  void close_end(size_t i) {
    if (ends_[i] >= 0) close(ends_[i]);
    ends_[i] = -1;
  }
  std::array<int, 2> ends_ = {-1, -1};
};

/// Appends what is there; false at the end of the stream.
bool read_some(int fd, std::string& text) {
  std::array<char, 1 << 14> buffer = {};
  const ssize_t n = read(fd, buffer.data(), buffer.size());
  if (n > 0) text.append(buffer.data(), static_cast<size_t>(n));
  return n > 0 || (n < 0 && errno == EINTR);
}

std::string last_line(const std::string& text) {
  const size_t end = text.find_last_not_of("\r\n");
  if (end == std::string::npos) return "";
  const size_t begin = text.find_last_of("\r\n", end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

pid_t spawn(const std::string& program, const std::vector<std::string>& arguments, int out,
            int err) {
  std::vector<std::string> words = {program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  // A group of its own: Ctrl-C reaches the parent only, which asks the child to stop.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t pid = 0;
  const int failed =
      posix_spawn(&pid, program.c_str(), &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    throw_error(ErrorCode::kUnavailable, "[bench] {} cannot be started: {}", program,
                std::strerror(failed));
  }
  return pid;
}

int wait_for(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

std::vector<std::string> own_command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<std::string> words;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\0', begin);
    words.push_back(text.substr(begin, end - begin));
    begin = end == std::string::npos ? text.size() : end + 1;
  }
  return words;
}

ChildResult run_child(const std::string& program, const std::vector<std::string>& arguments,
                      const std::function<bool()>& should_cancel) {
  Pipe out;
  Pipe err;
  const pid_t pid = spawn(program, arguments, out.write_end(), err.write_end());
  out.close_write_end();
  err.close_write_end();
  ChildResult result;
  std::string errors;
  bool asked_to_stop = false;
  std::array<pollfd, 2> polled = {{{out.read_end(), POLLIN, 0}, {err.read_end(), POLLIN, 0}}};
  while (polled[0].fd >= 0 || polled[1].fd >= 0) {
    if (poll(polled.data(), polled.size(), kPollMs) > 0) {
      if (polled[0].revents != 0 && !read_some(polled[0].fd, result.out)) polled[0].fd = -1;
      if (polled[1].revents != 0 && !read_some(polled[1].fd, errors)) polled[1].fd = -1;
    }
    if (!asked_to_stop && should_cancel && should_cancel()) {
      kill(pid, SIGINT);
      asked_to_stop = true;
    }
  }
  result.exit_code = wait_for(pid);
  result.error = last_line(errors);
  return result;
}

void end_with_parent() { prctl(PR_SET_PDEATHSIG, SIGTERM); }

}  // namespace plateau::bench
