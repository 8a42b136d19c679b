#include "eval/run_workers.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <optional>
#include <vector>

#include "base/check.h"

namespace plateau::eval {
namespace {

constexpr int kPollMs = 100;

// Messages from a worker: a kind, a length, that many bytes. To it: task numbers.
enum class MessageKind : uint32_t { kLine, kDone, kFailed };
struct MessageHead {
  MessageKind kind = MessageKind::kDone;
  int32_t code = 0;  // kFailed: the ErrorCode
  uint64_t n_bytes = 0;
};

bool write_all(int fd, const void* data, size_t n) {
  const char* bytes = static_cast<const char*>(data);
  while (n > 0) {
    const ssize_t written = ::send(fd, bytes, n, MSG_NOSIGNAL);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes += written;
    n -= static_cast<size_t>(written);
  }
  return true;
}

bool read_all(int fd, void* data, size_t n) {
  char* bytes = static_cast<char*>(data);
  while (n > 0) {
    const ssize_t got = ::read(fd, bytes, n);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes += got;
    n -= static_cast<size_t>(got);
  }
  return true;
}

bool send_message(int fd, MessageKind kind, const std::string& text, int32_t code = 0) {
  const MessageHead head = {.kind = kind, .code = code, .n_bytes = text.size()};
  return write_all(fd, &head, sizeof(head)) && write_all(fd, text.data(), text.size());
}

/// The life of a worker: tasks come in, lines go out. Never returns.
[[noreturn]] void work(int fd, const Task& task) {
  uint64_t next = 0;
  while (read_all(fd, &next, sizeof(next))) {
    ErrorCode code = ErrorCode::kInternal;
    std::optional<std::string> failure;
    try {
      task(next, [&](const std::string& line) {
        if (!send_message(fd, MessageKind::kLine, line)) ::_exit(1);  // nobody listens any more
      });
    } catch (const Error& error) {
      code = error.code();
      failure = error.what();
    } catch (const std::bad_alloc&) {
      code = ErrorCode::kResourceExhausted;
      failure = "out of memory";
    } catch (const std::exception& error) {
      failure = error.what();
    }
    const bool sent =
        failure ? send_message(fd, MessageKind::kFailed, *failure, static_cast<int32_t>(code))
                : send_message(fd, MessageKind::kDone, "");
    if (!sent || failure) break;
  }
  std::fflush(stderr);
  ::_exit(0);
}

struct Worker {
  pid_t pid = -1;
  int fd = -1;
};

/// The processes; those that are left are stopped and waited for at the end.
class Workers {
 public:
  ~Workers() {
    for (Worker& worker : workers_) {
      if (worker.pid > 0) ::kill(worker.pid, SIGKILL);
      end(worker);
    }
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  Workers() = default;

  std::vector<Worker>& all() { return workers_; }

  void start(const Task& task) {
    int ends[2] = {-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      throw_error(ErrorCode::kUnavailable, "[--jobs] cannot start a process: {}",
                  std::strerror(errno));
    }
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(1);
      ::close(ends[0]);
      for (const Worker& other : workers_) ::close(other.fd);
      work(ends[1], task);
    }
    ::close(ends[1]);
    if (pid < 0) {
      ::close(ends[0]);
      throw_error(ErrorCode::kUnavailable, "[--jobs] cannot start a process: {}",
                  std::strerror(errno));
    }
    workers_.push_back({pid, ends[0]});
  }

  /// Closes the socket and waits. Returns the wait status.
  static int end(Worker& worker) {
    if (worker.fd >= 0) ::close(worker.fd);
    worker.fd = -1;
    int status = 0;
    if (worker.pid > 0) {
      while (::waitpid(worker.pid, &status, 0) < 0 && errno == EINTR) {
      }
    }
    worker.pid = -1;
    return status;
  }

 private:
  std::vector<Worker> workers_;
};

[[noreturn]] void throw_ended(Worker& worker) {
  const int status = Workers::end(worker);
  throw_error(ErrorCode::kUnavailable,
              "[--jobs] a worker process ended unasked ({}); its unfinished results are lost, "
              "the others are kept; try fewer --jobs",
              WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                                  : fmt::format("exit code {}", WEXITSTATUS(status)));
}

/// Takes one message. Returns whether the worker is ready for another task.
bool take_message(Worker& worker, const LineSink& on_line) {
  MessageHead head;
  if (!read_all(worker.fd, &head, sizeof(head))) throw_ended(worker);
  std::string text(head.n_bytes, '\0');
  if (!read_all(worker.fd, text.data(), text.size())) throw_ended(worker);
  if (head.kind == MessageKind::kFailed) throw Error(static_cast<ErrorCode>(head.code), text);
  if (head.kind == MessageKind::kLine) on_line(text);
  return head.kind == MessageKind::kDone;
}

}  // namespace

void run_in_workers(size_t n_tasks, int n_jobs, const Task& task, const LineSink& on_line,
                    const std::function<bool()>& should_cancel) {
  PLATEAU_CHECK(n_jobs >= 1);
  Workers workers;
  uint64_t next = 0;
  size_t n_busy = 0;
  const auto give_task = [&](Worker& worker) {
    if (next == n_tasks) {
      Workers::end(worker);  // the end of its input ends it
    } else if (!write_all(worker.fd, &next, sizeof(next))) {
      throw_ended(worker);
    } else {
      ++next;
      ++n_busy;
    }
  };
  const size_t n_workers = std::min(n_tasks, static_cast<size_t>(n_jobs));
  for (size_t i = 0; i < n_workers; ++i) {
    workers.start(task);
    give_task(workers.all().back());
  }
  while (n_busy > 0) {
    if (should_cancel && should_cancel()) throw_error(ErrorCode::kCancelled, "interrupted");
    std::vector<pollfd> polled;
    std::vector<Worker*> of;
    for (Worker& worker : workers.all()) {
      if (worker.fd < 0) continue;
      polled.push_back({worker.fd, POLLIN, 0});
      of.push_back(&worker);
    }
    if (::poll(polled.data(), polled.size(), kPollMs) <= 0) continue;
    for (size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].revents == 0) continue;
      if (take_message(*of[i], on_line)) {
        --n_busy;
        give_task(*of[i]);
      }
    }
  }
}

}  // namespace plateau::eval
