#include "plateau/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "base/byte_size.h"
#include "base/check.h"
#include "base/machine.h"
#include "base/memory.h"
#include "engine/loaded_model.h"
#include "engine/memory_plan.h"
#include "engine/protection.h"
#include "engine/request_plan.h"
#include "engine/usage_report.h"

namespace plateau {
namespace {

constexpr std::array kSmallerBlocks = {512, 256, 128, 64};
constexpr int kBudgetStep = 64;
constexpr double kMiB = 1 << 20;

/// One way to run the request, and its cost.
struct Candidate {
  EngineOptions engine;
  Request request;
  engine::RequestPlan plan;
  std::vector<MemoryPart> memory;
};

class Fitter {
 public:
  Fitter(const EngineOptions& options, const Request& request, int64_t bound)
      : loaded_(options, {}, model::WeightUse::kPlanning), request_(request), bound_(bound) {}

  Plan fit() {
    Candidate candidate = cost(request_);
    if (bound_ > 0 && !fits(candidate)) candidate = concede(std::move(candidate));
    Usage usage = engine::planned_usage(candidate.request, candidate.plan, loaded_);
    return {.engine = std::move(candidate.engine),
            .request = std::move(candidate.request),
            .usage = std::move(usage),
            .memory = std::move(candidate.memory),
            .concessions = std::move(concessions_)};
  }

 private:
  bool fits(const Candidate& candidate) const { return total_bytes(candidate.memory) <= bound_; }
  bool has_free_block() const {
    return request_.kv.block == 0 && request_.kv.block_unit == BlockUnit::kTokens;
  }
  bool has_free_budget() const { return request_.kv.budget == 0; }

  bool has_free_encoder(const engine::RequestPlan& plan) const {
    return !plan.images.empty() && !loaded_.encoder->config().is_internvl() &&
           loaded_.options.encoder_memory == 0;
  }

  Candidate cost(const Request& request) {
    engine::RequestPlan plan = engine::plan_request(request, loaded_);
    std::vector<MemoryPart> memory = engine::plan_memory(request, plan, loaded_);
    if (least_.empty() || total_bytes(memory) < total_bytes(least_)) least_ = memory;
    return {loaded_.options, request, std::move(plan), std::move(memory)};
  }

  Candidate concede(Candidate candidate) {
    if (!candidate.plan.images.empty() && loaded_.encoder_batch() > 1) {
      loaded_.options.encoder_batch = 1;
      candidate = cost(request_);
      concessions_.push_back("tiles are encoded one at a time");
      if (fits(candidate)) return candidate;
    }
    if (has_free_block()) {
      if (auto found = smaller_block()) return std::move(*found);
    }
    if (has_free_encoder(candidate.plan)) {
      if (auto found = smaller_encoder()) return std::move(*found);
    }
    if (has_free_budget()) {
      if (auto found = smaller_budget(candidate.plan)) return std::move(*found);
    }
    refuse();
  }

  std::optional<Candidate> smaller_block() {
    for (const int n_block : kSmallerBlocks) {
      Request request = request_;
      request.kv.block = n_block;
      std::optional<Candidate> candidate = try_cost(request);
      if (candidate && fits(*candidate)) {
        concessions_.push_back(fmt::format("blocks of {} tokens", n_block));
        return candidate;
      }
    }
    return std::nullopt;
  }

  /// What the other parts leave, for an encoder that can take less.
  std::optional<Candidate> smaller_encoder() {
    const auto blocks = has_free_block() ? std::vector<int>{0, 64} : std::vector<int>{0};
    for (const int n_block : blocks) {
      Request request = request_;
      if (n_block > 0) request.kv.block = n_block;
      std::optional<Candidate> candidate = try_cost(request);
      if (!candidate) continue;
      int64_t others = 0;
      for (const MemoryPart& part : candidate->memory) {
        if (part.name != "encoder") others += part.bytes;
      }
      if (others >= bound_) continue;
      loaded_.options.encoder_memory = bound_ - others;
      try {
        candidate = try_cost(request);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kResourceExhausted) throw;
        candidate.reset();
      }
      if (candidate && fits(*candidate)) {
        if (n_block > 0) concessions_.push_back(fmt::format("blocks of {} tokens", n_block));
        concessions_.push_back(fmt::format("a vision encoder within {}",
                                           format_byte_size(loaded_.options.encoder_memory)));
        return candidate;
      }
      loaded_.options.encoder_memory = 0;
    }
    return std::nullopt;
  }

  /// The largest budget that fits, with the largest block that leaves room for one.
  std::optional<Candidate> smaller_budget(const engine::RequestPlan& full) {
    const int n_least = engine::smallest_budget(full.prompt, request_.kv.policy_options.window);
    const auto blocks = has_free_block() ? std::vector<int>{256, 64} : std::vector<int>{0};
    for (const int n_block : blocks) {
      Request request = request_;
      if (n_block > 0) request.kv.block = n_block;
      // In steps of kBudgetStep above the least: [0, high) fits as far as is known.
      std::optional<Candidate> best;
      int64_t low = 0;
      int64_t high = (full.prompt.n_tokens() - n_least) / kBudgetStep + 1;
      while (low < high) {
        const int64_t middle = best ? (low + high) / 2 : 0;
        request.kv.budget = static_cast<int>(n_least + middle * kBudgetStep);
        std::optional<Candidate> candidate = try_cost(request);
        if (candidate && fits(*candidate)) {
          best = std::move(candidate);
          low = middle + 1;
        } else if (!best) {
          break;
        } else {
          high = middle;
        }
      }
      if (!best) continue;
      if (n_block > 0) concessions_.push_back(fmt::format("blocks of {} tokens", n_block));
      concessions_.push_back(fmt::format("a KV budget of {} tokens, policy {}",
                                         best->request.kv.budget, best->request.kv.policy));
      return best;
    }
    return std::nullopt;
  }

  /// Nothing where the request's own options contradict the change.
  std::optional<Candidate> try_cost(const Request& request) {
    try {
      return cost(request);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInvalidArgument) throw;
      return std::nullopt;
    }
  }

  [[noreturn]] void refuse() const {
    const auto largest = std::max_element(
        least_.begin(), least_.end(),
        [](const MemoryPart& a, const MemoryPart& b) { return a.bytes < b.bytes; });
    const char* ways_out = "a smaller --kv-budget or a smaller --block";
    if (largest->name == "weights" || largest->name == "projector") {
      ways_out = "a smaller quantisation of the model or a larger --memory";
    } else if (largest->name == "encoder" || largest->name == "media") {
      ways_out = loaded_.encoder->config().is_internvl()
                     ? "a cap on the picture's size (--max-tiles) or a larger --memory"
                     : "a cap on the picture's size (--image-max-tokens) or a larger --memory";
    } else if (largest->name == "runtime" || largest->name == "host") {
      ways_out = "a shorter answer (-n) or a larger --memory";
    }
    throw_error(ErrorCode::kResourceExhausted,
                "[--memory] expected at least {:.1f} MiB for this request, got {:.1f} MiB; the "
                "largest part is {} on {} with {:.1f} MiB; try {}",
                static_cast<double>(total_bytes(least_)) / kMiB, static_cast<double>(bound_) / kMiB,
                largest->name, largest->device, static_cast<double>(largest->bytes) / kMiB,
                ways_out);
  }

  engine::LoadedModel loaded_;
  const Request& request_;
  const int64_t bound_;
  std::vector<std::string> concessions_;
  std::vector<MemoryPart> least_;  // the cheapest way that was tried
};

}  // namespace

int64_t total_bytes(const std::vector<MemoryPart>& parts) {
  int64_t total = 0;
  for (const MemoryPart& part : parts) total += part.bytes;
  return total;
}

void require_room(const Plan& plan) {
  std::map<std::string, int64_t> needed;
  for (const MemoryPart& part : plan.memory) {
    if (!part.mapped) needed[part.device] += part.bytes;
  }
  for (const model::Device& device : model::Device::all()) {
    const auto found = needed.find(device.name());
    if (found == needed.end()) continue;
    // The plan counts what this process holds already.
    const int64_t free =
        device.is_cpu() ? available_memory_bytes() + anon_bytes() : device.free_bytes();
    if (found->second > free) {
      throw_error(ErrorCode::kResourceExhausted,
                  "[memory] expected {} free on {}, found {}; try --memory {:.0f}MiB, or see "
                  "plateau plan for what is large",
                  format_byte_size(found->second), device.name(), format_byte_size(free),
                  static_cast<double>(free) / kMiB);
    }
  }
}

Plan plan(const EngineOptions& options, const Request& request, int64_t memory_bound) {
  return Fitter(options, request, memory_bound).fit();
}

}  // namespace plateau
