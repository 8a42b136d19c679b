#include "engine/memory_plan.h"

#include <algorithm>
#include <map>

#include "base/memory.h"
#include "graph/block_runner.h"
#include "kv/kv_cache.h"
#include "media/reader_memory.h"

namespace plateau::engine {
namespace {

// Thread stacks, allocator fragments, scheduler tables, the sampler.
constexpr int64_t kRuntimeSlack = int64_t{1} << 20;

using ByDevice = std::map<std::string, int64_t>;

void take_maximum(const std::vector<model::DeviceBytes>& more, ByDevice& fullest) {
  for (const auto& [device, bytes] : more) {
    fullest[device] = std::max(fullest[device], bytes);
  }
}

/// The blocks' shapes, without those that another one exceeds in every respect.
std::vector<graph::BlockShape> largest_shapes(const RequestPlan& plan, int n_window) {
  std::vector<graph::BlockShape> shapes;
  const int n_proxy = plan.policy && plan.policy->needs_question() ? n_window : 0;
  const auto add = [&](int n_rows, int n_before, bool evicts, bool wants_logits) {
    const int n_extra = evicts ? n_proxy : 0;
    graph::BlockShape shape = {.n_rows = n_rows + n_extra,
                               .n_cached = n_before,
                               .want_logits = wants_logits,
                               .n_proxy = n_extra};
    if (evicts) {
      shape.policy = plan.policy.get();
      shape.n_observed = n_extra > 0 ? n_extra : std::min(n_window, n_rows);
    }
    const auto same_kind = [&](const graph::BlockShape& other) {
      return other.n_rows == shape.n_rows && other.policy == shape.policy &&
             other.want_logits == shape.want_logits;
    };
    const auto known = std::find_if(shapes.begin(), shapes.end(), same_kind);
    if (known == shapes.end()) {
      shapes.push_back(shape);
    } else {
      known->n_cached = std::max(known->n_cached, shape.n_cached);
    }
  };
  const auto& steps = plan.budget.steps;
  for (size_t i = 0; i < steps.size(); ++i) {
    const bool is_last = i + 1 == steps.size();
    add(steps[i].n_rows, steps[i].n_before, steps[i].evicts(), is_last);
  }
  const bool evicts_later = plan.budget.n_decode_limit <= plan.budget.n_arena;
  const int n_decode_rows = 1 + (evicts_later ? n_proxy : 0);
  add(1, plan.budget.n_arena - n_decode_rows, evicts_later && plan.policy != nullptr, true);
  return shapes;
}

class MemoryPlanner {
 public:
  MemoryPlanner(const Request& request, const RequestPlan& plan, LoadedModel& loaded)
      : request_(request), plan_(plan), loaded_(loaded), cpu_(model::Device::cpu().name()) {}

  std::vector<MemoryPart> parts() {
    add_weights();
    add_decoder();
    if (loaded_.encoder && !plan_.images.empty()) {
      add_encoder();
      add("media", cpu_, media_bytes());
    }
    add("host", cpu_, host_bytes());
    add("runtime", cpu_, anon_bytes() - table_bytes() - loaded_bytes() + kRuntimeSlack);
    return std::move(parts_);
  }

 private:
  const model::ModelConfig& config() const { return loaded_.language_model.config(); }

  void add(const std::string& name, const std::string& device, int64_t bytes, bool mapped = false) {
    if (bytes > 0) parts_.push_back({name, device, bytes, mapped});
  }

  void add_weights(const std::string& name, const model::WeightBytes& bytes) {
    add(name, bytes.device, bytes.mapped, /*mapped=*/true);
    add(name, bytes.device, bytes.allocated);
  }

  void add_weights() {
    for (const auto& bytes : loaded_.language_model.weight_bytes()) add_weights("weights", bytes);
    if (loaded_.encoder) add_weights("projector", loaded_.encoder->weight_bytes());
  }

  void add_decoder() {
    kv::KvCache cache(loaded_.language_model, plan_.budget.n_arena, loaded_.options.cache_type_k,
                      loaded_.options.cache_type_v, model::WeightUse::kPlanning);
    for (const auto& [device, bytes] : cache.bytes_by_device()) add("kv", device, bytes);
    n_slot_ = cache.n_slot();
    graph::BlockRunner runner(loaded_.language_model, loaded_.backends, cache);
    ByDevice fullest;
    for (const graph::BlockShape& shape :
         largest_shapes(plan_, request_.kv.policy_options.window)) {
      take_maximum(runner.measure(shape), fullest);
      n_rows_ = std::max(n_rows_, shape.n_rows);
      n_attended_ = std::max(n_attended_, shape.n_attended());
    }
    for (const auto& [device, bytes] : fullest) add("compute", device, bytes);
  }

  void add_encoder() {
    if (!loaded_.encoder->config().is_internvl()) {
      int64_t fullest = 0;
      for (const PlannedImage& image : plan_.images) {
        const auto* chunks = std::get_if<ChunkPlan>(&image.cut);
        fullest =
            std::max(fullest, chunks != nullptr ? chunks->encoder_bytes
                                                : std::get<PatchPlan>(image.cut).encode.bytes);
      }
      add("encoder", loaded_.backends.device().name(), fullest);
      return;
    }
    for (const auto& [device, bytes] : loaded_.encoder->measure(largest_batch())) {
      add("encoder", device, bytes);
    }
  }

  /// Tiles encoded at once.
  int largest_batch() const {
    int n_tiles = 1;
    for (const PlannedImage& image : plan_.images) {
      n_tiles = std::max(n_tiles, image.n_units());
    }
    return std::min(n_tiles, loaded_.encoder_batch());
  }

  /// Pictures are opened one after the other.
  int64_t media_bytes() const {
    int64_t fullest = 0;
    for (const PlannedImage& image : plan_.images) {
      const auto* tiles = std::get_if<media::TileGrid>(&image.cut);
      if (image.film) {
        fullest = std::max(fullest, film_bytes(image));
        continue;
      }
      if (tiles != nullptr) {
        fullest = std::max(fullest, media::reader_bytes(image.info, *tiles));
      } else if (const auto* patches = std::get_if<PatchPlan>(&image.cut)) {
        fullest = std::max(fullest, band_bytes(image, patches->grid));
      } else {
        // The picture itself is counted with the encoder's.
        fullest = std::max(fullest, media::band_reader_bytes(image.info, image.info.width,
                                                             image.info.height, kPictureRows));
      }
    }
    return fullest;
  }

  /// A batch of tiles is counted with the encoder's, a slice's frames are not.
  int64_t film_bytes(const PlannedImage& image) const {
    const bool in_tiles = std::holds_alternative<media::TileGrid>(image.cut);
    return film_frames_bytes(*image.film, image.used_width(), image.used_height(),
                             in_tiles ? 1 : image.film->frames_per_slice);
  }

  /// A tower pulls one row of windows at a time.
  int64_t band_bytes(const PlannedImage& image, const media::TokenGrid& grid) const {
    const int64_t window = loaded_.encoder->config().qwen25vl().window_tokens;
    return media::band_reader_bytes(image.info, grid.width(), grid.height(),
                                    window * grid.token_size);
  }

  /// What the engine itself keeps in vectors.
  int64_t host_bytes() const {
    constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
    const int64_t n_heads = int64_t{config().n_layer} * config().n_head_kv;
    const bool has_proxies = plan_.policy && plan_.policy->needs_question();
    int64_t bytes = 0;
    bytes += table_bytes() + film_list_bytes();
    bytes += n_heads * n_slot_ * static_cast<int64_t>(sizeof(int32_t));  // slot map
    bytes += (has_proxies ? 2 : 1) * int64_t{n_rows_} * config().n_embd * kFloat;
    bytes += int64_t{n_rows_} * n_attended_ * static_cast<int64_t>(sizeof(ggml_fp16_t));  // mask
    if (plan_.policy) {
      bytes += 2 * n_heads * n_attended_ * kFloat;  // signals and scores
      bytes += int64_t{config().n_head_kv} * n_attended_ *
               static_cast<int64_t>(sizeof(kv::TokenInfo));  // one layer's
    }
    bytes += int64_t{4} * config().n_vocab * kFloat;  // logits and candidates
    if (loaded_.encoder && !plan_.images.empty() && loaded_.encoder->config().is_internvl()) {
      bytes += loaded_.encoder->host_bytes(largest_batch());
      bytes += loaded_.options.embedding_cache_bytes;  // at its fullest, with other pictures
    }
    return bytes;
  }

  /// What the process holds of weights now, although it only plans: "projector" counts them.
  int64_t loaded_bytes() const {
    if (!loaded_.encoder || !loaded_.encoder->config().is_mtmd()) return 0;
    const model::WeightBytes& bytes = loaded_.encoder->weight_bytes();
    return bytes.device == cpu_ ? bytes.allocated : 0;
  }

  /// The prompt and its blocks, which the process holds already while it plans.
  int64_t table_bytes() const {
    return plan_.prompt.n_bytes() +
           static_cast<int64_t>(plan_.blocks.capacity() * sizeof(BlockPlan) +
                                plan_.budget.steps.capacity() * sizeof(kv::BlockStep));
  }

  int64_t film_list_bytes() const {
    constexpr int64_t kAllocation = 32;  // the least that a string takes from the heap
    int64_t bytes = 0;
    for (const PlannedImage& image : plan_.images) {
      if (!image.film) continue;
      for (const media::ListedFrame& frame : image.film->listed) {
        bytes += static_cast<int64_t>(sizeof(frame) + frame.path.capacity()) + kAllocation;
      }
    }
    return bytes;
  }

  const Request& request_;
  const RequestPlan& plan_;
  LoadedModel& loaded_;
  const std::string cpu_;
  std::vector<MemoryPart> parts_;
  int n_slot_ = 0;
  int n_rows_ = 0;
  int n_attended_ = 0;
};

}  // namespace

std::vector<MemoryPart> plan_memory(const Request& request, const RequestPlan& plan,
                                    LoadedModel& loaded) {
  return MemoryPlanner(request, plan, loaded).parts();
}

}  // namespace plateau::engine
