#include "vision/towers/qwen25vl.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/release.h"
#include "ggml-cpu.h"
#include "vision/towers/qwen25vl_graph.h"
#include "vision/window_order.h"

namespace plateau::vision {
namespace {

/// Cuts [0, n) into the fewest nearly equal parts of at most `most`, and calls f(first, n_part).
template <typename F>
void for_each_part(int64_t n, int64_t most, F&& f) {
  const int64_t n_parts = (n + most - 1) / most;
  for (int64_t i = 0; i < n_parts; ++i) f(i * n / n_parts, (i + 1) * n / n_parts - i * n / n_parts);
}

/// Tensors in one buffer of the device.
struct DeviceTensors {
  ggml_context_ptr context;
  ggml_backend_buffer_ptr buffer;

  int64_t n_bytes() const {
    return buffer ? static_cast<int64_t>(ggml_backend_buffer_get_size(buffer.get())) : 0;
  }
};

ggml_context_ptr new_context(size_t n_tensors) {
  ggml_context_ptr context(
      ggml_init({ggml_tensor_overhead() * n_tensors, /*mem_buffer=*/nullptr, /*no_alloc=*/true}));
  PLATEAU_CHECK(context != nullptr);
  return context;
}

void allocate(DeviceTensors& tensors, const model::Device& device, int64_t n_patch) {
  tensors.buffer.reset(ggml_backend_alloc_ctx_tensors_from_buft(
      tensors.context.get(), ggml_backend_dev_buffer_type(device.handle())));
  if (!tensors.buffer) {
    throw_error(ErrorCode::kResourceExhausted,
                "[vision encoder] expected room for {} patches on {}, the device has less; try "
                "--encoder-memory or --image-max-tokens",
                n_patch, device.name());
  }
}

}  // namespace

/// One call of encode().
class Qwen25VlTower::Run {
 public:
  Run(Qwen25VlTower& tower, const PatchArea& area, std::span<media::PixelBands* const> frames,
      int group, const std::function<void(double)>& on_progress)
      : tower_(tower),
        config_(tower.config_),
        vision_(tower.config_.qwen25vl()),
        area_(area),
        frames_(frames),
        on_progress_(on_progress),
        merge2_(int64_t{vision_.merge} * vision_.merge),
        group_tokens_(std::max<int64_t>(1, group / merge2_)),
        order_(area.n_rows, area.n_cols, vision_.window_tokens),
        n_patch_(order_.n_tokens() * merge2_),
        graphs_(config_, tower.weights_, stream_) {
    x_.context = new_context(1);
    stream_.x = ggml_new_tensor_2d(x_.context.get(), GGML_TYPE_F32, config_.n_embd, n_patch_);
    allocate(x_, tower_.backends_.device(), n_patch_);
  }

  std::vector<float> run() {
    for (int row = 0; row < order_.n_window_rows(); ++row) embed_window_row(row);
    release(patches_);
    for (int il = 0; il < config_.n_layer;) {
      if (vision_.is_full_attention(il)) {
        full_attention(il++);
        continue;
      }
      int il_end = il + 1;
      while (il_end < config_.n_layer && !vision_.is_full_attention(il_end)) ++il_end;
      window_attention(il, il_end);
      il = il_end;
    }
    keys_values_ = {};  // before the result takes their place
    return merge();
  }

 private:
  PatchRange patches_of(int64_t first_token, int64_t n_tokens) const {
    return {first_token * merge2_, n_tokens * merge2_};
  }

  void embed_window_row(int row) {
    const int token_size = config_.token_size();
    std::vector<std::span<const uint8_t>> bands;
    for (media::PixelBands* frame : frames_) {
      bands.push_back(frame->next(order_.n_rows(row) * token_size));
    }
    for (const WindowOrder::Run& run : order_.runs(row)) {
      for_each_part(run.n_tokens, group_tokens_, [&](int64_t first, int64_t n) {
        const int64_t first_token = run.first_token + first;
        const PatchRange range = patches_of(first_token, n);
        const StreamGraph graph = graphs_.embed(range, static_cast<int>(bands.size()));
        compute(graph, [&] {
          for (size_t i = 0; i < bands.size(); ++i) {
            read_patches(bands[i], order_.first_row(row), first_token, n);
            ggml_backend_tensor_set(graph.patches[i], patches_.data(), 0,
                                    patches_.size() * sizeof(float));
          }
        });
        progress(range.n, 1);
      });
    }
  }

  /// Normalised pixels of each patch, [patch, patch, 3, n], the kernels' order.
  void read_patches(std::span<const uint8_t> band, int first_row, int64_t first_token, int64_t n) {
    const auto size = static_cast<size_t>(config_.patch_size);
    const size_t row_bytes =
        static_cast<size_t>(area_.n_cols) * static_cast<size_t>(config_.token_size()) * 3;
    patches_.resize(static_cast<size_t>(n * merge2_) * 3 * size * size);
    std::array<std::array<float, 256>, 3> table;
    for (size_t channel = 0; channel < 3; ++channel) {
      for (size_t value = 0; value < 256; ++value) {
        table[channel][value] = (static_cast<float>(value) / 255.0f - config_.image_mean[channel]) /
                                config_.image_std[channel];
      }
    }
    float* out = patches_.data();
    for (int64_t token = first_token; token < first_token + n; ++token) {
      const WindowOrder::Place place = order_.places()[static_cast<size_t>(token)];
      for (int i = 0; i < static_cast<int>(merge2_); ++i) {
        const auto y0 =
            static_cast<size_t>((place.row - first_row) * vision_.merge + i / vision_.merge) * size;
        const auto x0 = static_cast<size_t>(place.col * vision_.merge + i % vision_.merge) * size;
        for (size_t channel = 0; channel < 3; ++channel) {
          for (size_t y = 0; y < size; ++y) {
            const uint8_t* row = band.data() + (y0 + y) * row_bytes + x0 * 3 + channel;
            for (size_t x = 0; x < size; ++x) *out++ = table[channel][row[3 * x]];
          }
        }
      }
    }
  }

  void window_attention(int il_begin, int il_end) {
    for (const WindowOrder::Shape& shape : order_.shapes()) {
      const int64_t n_windows_at_once = std::max<int64_t>(1, group_tokens_ / shape.n_tokens);
      for_each_part(shape.n_windows, n_windows_at_once, [&](int64_t first, int64_t n_windows) {
        const PatchRange range =
            patches_of(shape.first_token + first * shape.n_tokens, n_windows * shape.n_tokens);
        compute(graphs_.windows(range, n_windows, il_begin, il_end), range);
        progress(range.n, il_end - il_begin);
      });
    }
  }

  void full_attention(int il) {
    if (!keys_values_.context) {
      keys_values_.context = new_context(2);
      for (ggml_tensor** tensor : {&stream_.k, &stream_.v}) {
        *tensor = ggml_new_tensor_3d(keys_values_.context.get(), GGML_TYPE_F16, config_.head_dim(),
                                     n_patch_, config_.n_head);
      }
      allocate(keys_values_, tower_.backends_.device(), n_patch_);
    }
    for_each_part(order_.n_tokens(), group_tokens_, [&](int64_t first, int64_t n) {
      const PatchRange range = patches_of(first, n);
      compute(graphs_.keys_values(range, il), range);
    });
    for_each_part(order_.n_tokens(), group_tokens_, [&](int64_t first, int64_t n) {
      const PatchRange range = patches_of(first, n);
      compute(graphs_.queries(range, il), range);
      progress(range.n, 1);
    });
  }

  std::vector<float> merge() {
    const auto n_out = static_cast<size_t>(config_.n_embd_out);
    result_.resize(n_out * static_cast<size_t>(order_.n_tokens()));
    for_each_part(order_.n_tokens(), group_tokens_, [&](int64_t first, int64_t n) {
      const PatchRange range = patches_of(first, n);
      const StreamGraph graph = graphs_.merge(range);
      compute(graph, [] {});
      merged_.resize(n_out * static_cast<size_t>(n));
      ggml_backend_tensor_get(graph.embeddings, merged_.data(), 0, merged_.size() * sizeof(float));
      for (int64_t i = 0; i < n; ++i) {
        const WindowOrder::Place place = order_.places()[static_cast<size_t>(first + i)];
        const size_t at = static_cast<size_t>(place.row) * static_cast<size_t>(area_.n_cols) +
                          static_cast<size_t>(place.col);
        std::copy_n(merged_.data() + static_cast<size_t>(i) * n_out, n_out,
                    result_.data() + at * n_out);
      }
      note_peak();
      progress(range.n, 1);
    });
    return std::move(result_);
  }

  void compute(const StreamGraph& graph, const std::function<void()>& set_inputs) {
    tower_.backends_.compute(tower_.sched_, graph.graph, set_inputs);
    const ggml_cplan plan =
        ggml_graph_plan(graph.graph, tower_.backends_.n_threads(), /*threadpool=*/nullptr);
    work_bytes_ = std::max(work_bytes_, static_cast<int64_t>(plan.work_size));
    note_peak();
  }

  void compute(const StreamGraph& graph, PatchRange range) {
    compute(graph, [&] {
      // True positions: rows count from the top of the picture, not of the area.
      const auto n = static_cast<size_t>(range.n);
      positions_.resize(4 * n);
      for (size_t i = 0; i < n; ++i) {
        const auto patch = static_cast<size_t>(range.first) + i;
        const auto within = static_cast<int>(patch % static_cast<size_t>(merge2_));
        const WindowOrder::Place place = order_.places()[patch / static_cast<size_t>(merge2_)];
        const int y = (area_.first_row + place.row) * vision_.merge + within / vision_.merge;
        const int x = place.col * vision_.merge + within % vision_.merge;
        positions_[i] = positions_[2 * n + i] = y;
        positions_[n + i] = positions_[3 * n + i] = x;
      }
      ggml_backend_tensor_set(graph.positions, positions_.data(), 0,
                              positions_.size() * sizeof(int32_t));
    });
  }

  void progress(int64_t n_patches, int n_passes) {
    done_ += n_patches * n_passes;
    if (on_progress_) {
      const int64_t total = n_patch_ * (config_.n_layer + 2);  // with embedding and merger
      on_progress_(static_cast<double>(done_) / static_cast<double>(total));
    }
  }

  void note_peak() {
    const auto host = static_cast<int64_t>(
        (patches_.size() + result_.size() + merged_.size()) * sizeof(float) +
        positions_.size() * sizeof(int32_t) + order_.places().size() * sizeof(WindowOrder::Place));
    tower_.peak_bytes_ =
        std::max(tower_.peak_bytes_, x_.n_bytes() + keys_values_.n_bytes() + host + work_bytes_ +
                                         model::scheduler_bytes(tower_.sched_));
  }

  Qwen25VlTower& tower_;
  const model::VisionConfig& config_;
  const model::Qwen25VlVision& vision_;
  PatchArea area_;
  std::span<media::PixelBands* const> frames_;
  const std::function<void(double)>& on_progress_;
  int64_t merge2_;  // patches of a token
  int64_t group_tokens_;
  WindowOrder order_;
  int64_t n_patch_;
  PatchStream stream_;
  Qwen25VlGraphs graphs_;
  DeviceTensors x_;
  DeviceTensors keys_values_;
  std::vector<float> patches_;  // pixels of one frame's patches, one group
  std::vector<int32_t> positions_;
  std::vector<float> merged_;  // one group of embeddings, in window order
  std::vector<float> result_;
  int64_t work_bytes_ = 0;
  int64_t done_ = 0;
};

Qwen25VlTower::Qwen25VlTower(const model::VisionConfig& config, const model::WeightMap& weights,
                             const model::Backends& backends, ggml_backend_sched_t sched)
    : config_(config), weights_(weights), backends_(backends), sched_(sched) {}

std::vector<float> Qwen25VlTower::encode(const PatchArea& area,
                                         std::span<media::PixelBands* const> frames, int group,
                                         const std::function<void(double)>& on_progress) {
  PLATEAU_CHECK(frames.size() == 1 || frames.size() == 2);
  for (const media::PixelBands* frame : frames) {
    PLATEAU_CHECK(frame->width() == area.n_cols * config_.token_size());
  }
  return Run(*this, area, frames, group, on_progress).run();
}

}  // namespace plateau::vision
