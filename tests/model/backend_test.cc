#include "model/backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "gguf.h"
#include "model/log_capture.h"
#include "support/expect_error.h"

namespace plateau::model {
namespace {

using test::expect_error;

TEST(Device, TheCpuIsThereAndFoundByName) {
  const Device cpu = Device::cpu();
  EXPECT_TRUE(cpu.is_cpu());
  EXPECT_FALSE(cpu.description().empty());
  EXPECT_EQ(Device::find(cpu.name()).handle(), cpu.handle());
  bool listed = false;
  bool has_other = false;
  for (const Device& device : Device::all()) {
    listed |= device.handle() == cpu.handle();
    has_other |= !device.is_cpu();
  }
  EXPECT_TRUE(listed);
  EXPECT_EQ(Device::find("").is_cpu(), !has_other);
}

TEST(Device, AnUnknownNameListsTheKnownOnes) {
  expect_error([] { Device::find("nonesuch"); }, ErrorCode::kInvalidArgument,
               {Device::cpu().name(), "nonesuch"});
}

TEST(UsableCores, IsWithinTheMachine) {
  EXPECT_GE(usable_cores(), 1);
  EXPECT_LE(usable_cores(), static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));
}

/// y = x + x + ... with many nodes, so that there is something to interrupt.
class Sum {
 public:
  static constexpr int kNodes = 64;

  float run(Backends& backends, float x) {
    const ggml_backend_sched_ptr sched = backends.new_scheduler(2 * kNodes);
    ggml_context_ptr context(ggml_init({ggml_tensor_overhead() * 2 * kNodes +
                                            ggml_graph_overhead_custom(2 * kNodes, /*grads=*/false),
                                        nullptr, /*no_alloc=*/true}));
    ggml_cgraph* graph = ggml_new_graph_custom(context.get(), 2 * kNodes, /*grads=*/false);
    ggml_tensor* input = ggml_new_tensor_1d(context.get(), GGML_TYPE_F32, 1);
    ggml_set_input(input);
    ggml_tensor* y = input;
    for (int i = 1; i < kNodes; ++i) y = ggml_add(context.get(), y, input);
    ggml_set_output(y);
    ggml_build_forward_expand(graph, y);
    backends.compute(sched.get(), graph, [&] { ggml_backend_tensor_set(input, &x, 0, sizeof(x)); });
    float result = 0;
    ggml_backend_tensor_get(y, &result, 0, sizeof(result));
    return result;
  }
};

TEST(Backends, ComputeAGraph) {
  Backends backends(Device::cpu(), /*n_threads=*/2);
  EXPECT_EQ(backends.n_threads(), 2);
  EXPECT_TRUE(backends.device().is_cpu());
  EXPECT_EQ(Sum().run(backends, 2.0F), 128.0F);
}

TEST(Backends, APollThatSaysYesCancelsAndTheNextRunIsUnharmed) {
  Backends backends(Device::cpu(), /*n_threads=*/1);
  int polls = 0;
  backends.set_cancel_poll([&] { return ++polls > 3; });
  expect_error([&] { Sum().run(backends, 1.0F); }, ErrorCode::kCancelled, {"interrupted"});
  EXPECT_GT(polls, 3);
  backends.set_cancel_poll([] { return false; });
  EXPECT_EQ(Sum().run(backends, 1.0F), 64.0F);
  backends.set_cancel_poll({});
  EXPECT_EQ(Sum().run(backends, 0.5F), 32.0F);
}

TEST(Backends, NoThreadsAreABug) {
  expect_error([] { Backends(Device::cpu(), /*n_threads=*/0); }, ErrorCode::kInternal,
               {"n_threads"});
}

TEST(LogCapture, KeepsTheLastErrorLineOfItsThread) {
  const LogCapture log;
  EXPECT_EQ(log.first_error("nothing"), "nothing");
  EXPECT_EQ(gguf_init_from_file("/nonexistent/file", {true, nullptr}), nullptr);
  const std::string said = log.first_error("nothing");
  EXPECT_THAT(said, testing::HasSubstr("/nonexistent/file"));
  EXPECT_NE(said.back(), '\n');
  std::thread([] { EXPECT_EQ(LogCapture().first_error("nothing"), "nothing"); }).join();
  EXPECT_EQ(log.first_error("nothing"), said);
}

}  // namespace
}  // namespace plateau::model
