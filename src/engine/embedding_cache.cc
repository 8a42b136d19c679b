#include "engine/embedding_cache.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/check.h"
#include "engine/chunk_plan.h"

namespace plateau::engine {
namespace {

int64_t bytes_of(const PictureEmbeddings& embeddings) {
  return static_cast<int64_t>(embeddings.values.size() * sizeof(float));
}

/// How the picture is cut into units, which its embeddings depend on.
std::string cut_key(const PlannedImage& image) {
  if (const auto* tiles = std::get_if<media::TileGrid>(&image.cut)) {
    return fmt::format("{}x{}|{}", tiles->n_cols, tiles->n_rows, tiles->thumbnail);
  }
  if (std::holds_alternative<ChunkPlan>(image.cut)) return "chunks";  // the file decides
  const auto& patches = std::get<PatchPlan>(image.cut);
  return fmt::format("{}x{}/{}", patches.grid.n_cols, patches.grid.n_rows,
                     patches.encode.rows_per_unit);
}

/// Of the whole picture, whose first unit has `n_first` values.
size_t n_values(const PlannedImage& image, size_t n_first) {
  if (const auto* patches = std::get_if<PatchPlan>(&image.cut)) {
    const auto n_embd = n_first / static_cast<size_t>(patches->area(0).n_tokens());
    return n_embd * static_cast<size_t>(patches->grid.n_tokens());
  }
  if (const auto* chunks = std::get_if<ChunkPlan>(&image.cut)) {
    const auto first = static_cast<size_t>(chunks->layout.units.front().n_tokens());
    return n_first / first * static_cast<size_t>(n_tokens(chunks->layout));
  }
  return n_first * static_cast<size_t>(image.n_units());
}

}  // namespace

std::shared_ptr<const PictureEmbeddings> EmbeddingCache::find(const std::string& key) {
  const auto found = index_.find(key);
  if (found == index_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->second;
}

bool EmbeddingCache::make_room(int64_t n_bytes) {
  if (n_bytes > max_bytes_) return false;
  while (n_bytes_ + n_bytes > max_bytes_) {
    n_bytes_ -= bytes_of(*entries_.back().second);
    index_.erase(entries_.back().first);
    entries_.pop_back();
  }
  return true;
}

void EmbeddingCache::insert(const std::string& key, PictureEmbeddings embeddings) {
  const int64_t n_bytes = bytes_of(embeddings);
  if (index_.contains(key) || !make_room(n_bytes)) return;
  n_bytes_ += n_bytes;
  entries_.emplace_front(key, std::make_shared<const PictureEmbeddings>(std::move(embeddings)));
  index_[key] = entries_.begin();
}

std::string embedding_key(const PlannedImage& image) {
  std::error_code ec;
  const auto size = std::filesystem::file_size(image.path, ec);
  const auto time = std::filesystem::last_write_time(image.path, ec).time_since_epoch().count();
  return fmt::format("{}|{}|{}|{}", image.path, size, time, cut_key(image));
}

void CachedSource::open(int image) {
  image_ = image;
  held_ = nullptr;
  collects_ = false;
  collected_ = {};
  if (images_[static_cast<size_t>(image)].film) return;  // of any length, and would evict pictures
  key_ = embedding_key(images_[static_cast<size_t>(image)]);
  held_ = cache_.find(key_);
  collects_ = held_ == nullptr;
}

void CachedSource::collect(int unit, std::span<const float> embeddings) {
  const auto n_collected = static_cast<int>(collected_.ends.size());
  if (!collects_ || unit < n_collected) return;  // the same unit may be asked for again
  PLATEAU_CHECK(unit == n_collected);
  const PlannedImage& planned = images_[static_cast<size_t>(image_)];
  if (n_collected == 0) {
    const size_t n_floats = n_values(planned, embeddings.size());
    collects_ = cache_.make_room(static_cast<int64_t>(n_floats * sizeof(float)));
    if (!collects_) return;
    collected_.values.reserve(n_floats);
  }
  collected_.values.insert(collected_.values.end(), embeddings.begin(), embeddings.end());
  collected_.ends.push_back(collected_.values.size());
  if (n_collected + 1 == planned.n_units()) {
    cache_.insert(key_, std::move(collected_));
    collects_ = false;
  }
}

std::span<const float> CachedSource::unit(int image, int unit) {
  if (image != image_) open(image);
  if (held_ != nullptr) {
    const auto index = static_cast<size_t>(unit);
    const size_t begin = unit == 0 ? 0 : held_->ends[index - 1];
    return std::span(held_->values).subspan(begin, held_->ends[index] - begin);
  }
  const std::span<const float> embeddings = source_.unit(image, unit);
  collect(unit, embeddings);
  return embeddings;
}

}  // namespace plateau::engine
