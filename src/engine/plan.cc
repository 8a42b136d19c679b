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
constexpr int kModerateBudget = 1024;
constexpr double kMiB = 1 << 20;

/// One way to run the request, and its cost.
struct Candidate {
  EngineOptions engine;
  Request request;
  engine::RequestPlan plan;
  std::vector<MemoryPart> memory;
};

/// Whether a picture may be encoded in bands that do not see each other.
enum class Encoding { kExact, kInBands };

bool is_in_bands(const engine::RequestPlan& plan) {
  return std::any_of(plan.images.begin(), plan.images.end(), [](const auto& image) {
    const auto* patches = std::get_if<engine::PatchPlan>(&image.cut);
    return patches != nullptr && patches->encode.n_units > 1;
  });
}

int64_t part_bytes(const std::vector<MemoryPart>& memory, const std::string& name) {
  int64_t total = 0;
  for (const MemoryPart& part : memory) total += part.name == name ? part.bytes : 0;
  return total;
}

/// Makes the request fit; see plan().
class Fitter {
 public:
  Fitter(const EngineOptions& options, const Request& request, int64_t bound)
      : loaded_(options, {}, model::WeightUse::kPlanning),
        options_(loaded_.options),
        request_(request),
        bound_(bound) {}

  Plan fit() {
    Candidate candidate = cost(request_, options_);
    if (bound_ > 0 && !fits(candidate)) candidate = concede();
    loaded_.options = candidate.engine;
    Usage usage = engine::planned_usage(candidate.request, candidate.plan, loaded_);
    std::vector<std::string> changes = concessions(candidate);
    return {.engine = std::move(candidate.engine),
            .request = std::move(candidate.request),
            .usage = std::move(usage),
            .memory = std::move(candidate.memory),
            .concessions = std::move(changes)};
  }

 private:
  bool fits(const Candidate& candidate) const { return total_bytes(candidate.memory) <= bound_; }
  bool has_free_block() const {
    return request_.kv.block == 0 && request_.kv.block_unit == BlockUnit::kTokens;
  }
  bool has_free_budget() const { return request_.kv.budget == 0; }
  /// An encoder that can do with less memory, and was not given a bound of its own.
  bool has_free_encoder() const {
    return loaded_.encoder && loaded_.encoder->config().is_qwen25vl() &&
           options_.encoder_memory == 0;
  }
  bool has_tiles() const { return loaded_.encoder && loaded_.encoder->config().is_internvl(); }

  Candidate cost(const Request& request, const EngineOptions& options) {
    loaded_.options = options;
    engine::RequestPlan plan = engine::plan_request(request, loaded_);
    std::vector<MemoryPart> memory = engine::plan_memory(request, plan, loaded_);
    if (least_.empty() || total_bytes(memory) < total_bytes(least_)) least_ = memory;
    return {loaded_.options, request, std::move(plan), std::move(memory)};
  }

  Candidate concede() {
    // What leaves the answer as it is comes first.
    if (auto found = squeeze(request_, Encoding::kExact)) return std::move(*found);
    if (has_free_block()) {
      for (const int n_block : kSmallerBlocks) {
        Request request = request_;
        request.kv.block = n_block;
        if (auto found = squeeze(request, Encoding::kExact)) return std::move(*found);
      }
    }
    loaded_.options = options_;
    const engine::RequestPlan full = engine::plan_request(request_, loaded_);
    const int n_least = engine::smallest_budget(full.prompt, request_.kv.policy_options.window);
    if (has_free_budget()) {
      if (auto found = largest_budget(n_least, full.prompt.n_tokens())) return std::move(*found);
    }
    if (has_free_encoder()) {
      if (auto found = in_bands(n_least)) return std::move(*found);
    }
    refuse();
  }

  Request with(int n_block, int budget) const {
    Request request = request_;
    if (has_free_block()) request.kv.block = n_block;
    if (has_free_budget()) request.kv.budget = budget;
    return request;
  }

  /// The request with an encoder that is held to what the bound leaves it; nothing where that does
  /// not fit, or takes bands and `encoding` allows none.
  std::optional<Candidate> squeeze(const Request& request, Encoding encoding) {
    std::optional<Candidate> candidate = try_cost(request, options_);
    if (!candidate || fits(*candidate)) return candidate;
    EngineOptions options = options_;
    if (!has_free_encoder()) {
      if (has_tiles() && options.encoder_batch == 0) options.encoder_batch = 1;
    } else {
      const int64_t excess = total_bytes(candidate->memory) - bound_;
      options.encoder_memory = part_bytes(candidate->memory, "encoder") - excess;
      if (options.encoder_memory < 1) return std::nullopt;
    }
    candidate = try_cost(request, options);
    if (!candidate || !fits(*candidate)) return std::nullopt;
    if (encoding == Encoding::kExact && is_in_bands(candidate->plan)) return std::nullopt;
    return candidate;
  }

  /// The largest budget that fits, with the largest block that leaves room for one.
  std::optional<Candidate> largest_budget(int n_least, int64_t n_tokens) {
    for (const int n_block : {256, 64}) {
      // In steps of kBudgetStep above the least; below `low` everything fits.
      std::optional<Candidate> best;
      int64_t low = 0;
      int64_t high = (n_tokens - n_least) / kBudgetStep + 1;
      while (low < high) {
        const int64_t middle = best ? (low + high) / 2 : 0;
        std::optional<Candidate> candidate = squeeze(
            with(n_block, static_cast<int>(n_least + middle * kBudgetStep)), Encoding::kExact);
        if (candidate) {
          best = std::move(candidate);
          low = middle + 1;
        } else if (!best) {
          break;
        } else {
          high = middle;
        }
      }
      if (best || !has_free_block()) return best;
    }
    return std::nullopt;
  }

  /// The encoder takes what a moderate budget leaves: it loses more by bands than the cache does by
  /// its last thousand tokens.
  std::optional<Candidate> in_bands(int n_least) {
    for (const int budget : {std::max(n_least, kModerateBudget), n_least}) {
      for (const int n_block : {256, 64}) {
        if (auto found = squeeze(with(n_block, budget), Encoding::kInBands)) return found;
      }
    }
    return std::nullopt;
  }

  /// Nothing where the request's own options contradict the change.
  std::optional<Candidate> try_cost(const Request& request, const EngineOptions& options) {
    try {
      return cost(request, options);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInvalidArgument &&
          error.code() != ErrorCode::kResourceExhausted) {
        throw;
      }
      return std::nullopt;
    }
  }

  /// What the candidate changes, in words.
  std::vector<std::string> concessions(const Candidate& candidate) const {
    std::vector<std::string> changes;
    if (candidate.engine.encoder_batch != options_.encoder_batch) {
      changes.push_back("tiles are encoded one at a time");
    }
    if (candidate.engine.encoder_memory != options_.encoder_memory) {
      changes.push_back(fmt::format("{} for the vision encoder",
                                    format_byte_size(candidate.engine.encoder_memory)));
    }
    if (candidate.request.kv.block != request_.kv.block) {
      changes.push_back(fmt::format("blocks of {} tokens", candidate.request.kv.block));
    }
    if (candidate.request.kv.budget != request_.kv.budget) {
      changes.push_back(fmt::format("a KV budget of {} tokens, policy {}",
                                    candidate.request.kv.budget, candidate.request.kv.policy));
    }
    return changes;
  }

  [[noreturn]] void refuse() const {
    const auto largest = std::max_element(
        least_.begin(), least_.end(),
        [](const MemoryPart& a, const MemoryPart& b) { return a.bytes < b.bytes; });
    throw_error(ErrorCode::kResourceExhausted,
                "[--memory] expected at least {:.1f} MiB for this request, got {}; the largest "
                "part is {} on {} with {:.1f} MiB; try {} or a larger --memory",
                static_cast<double>(total_bytes(least_)) / kMiB, format_byte_size(bound_),
                largest->name, largest->device, static_cast<double>(largest->bytes) / kMiB,
                what_makes_smaller(largest->name));
  }

  std::string what_makes_smaller(const std::string& part) const {
    if (part == "weights" || part == "projector") return "a smaller quantisation of the model";
    if (part == "host") return "a shorter prompt or answer (-n)";
    if (part == "runtime") return "a model with a smaller vocabulary";
    if (part != "encoder" && part != "media") return "a smaller --kv-budget, a smaller --block";
    if (loaded_.encoder->config().is_mtmd()) return "a smaller picture";
    if (has_films()) return "smaller frames (--max-frame-tokens)";
    return has_tiles() ? "a cap on the picture's size (--max-tiles)"
                       : "a cap on the picture's size (--image-max-tokens)";
  }

  bool has_films() const {
    const auto is_film = [](const ContentPart& part) {
      return std::holds_alternative<VideoPart>(part);
    };
    return std::any_of(
        request_.messages.begin(), request_.messages.end(), [&](const Message& message) {
          return std::any_of(message.content.begin(), message.content.end(), is_film);
        });
  }

  engine::LoadedModel loaded_;
  const EngineOptions options_;
  const Request& request_;
  const int64_t bound_;
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
