#include "engine/embedding_cache.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/check.h"

namespace plateau::engine {
namespace {

int64_t bytes_of(const PictureEmbeddings& embeddings) {
  return static_cast<int64_t>(embeddings.size() * sizeof(float));
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
  return fmt::format("{}|{}|{}|{}x{}|{}", image.path, size, time, image.grid.n_cols,
                     image.grid.n_rows, image.grid.thumbnail);
}

void CachedSource::open(int image) {
  image_ = image;
  key_ = embedding_key(images_[static_cast<size_t>(image)]);
  held_ = cache_.find(key_);
  collects_ = held_ == nullptr;
  n_collected_ = 0;
  collected_ = {};
}

void CachedSource::collect(int unit, std::span<const float> embeddings) {
  const int n_units = images_[static_cast<size_t>(image_)].grid.n_tiles();
  if (!collects_ || unit < n_collected_) return;  // the same unit may be asked for again
  PLATEAU_CHECK(unit == n_collected_);
  if (n_collected_ == 0) {
    const size_t n_floats = embeddings.size() * static_cast<size_t>(n_units);
    collects_ = cache_.make_room(static_cast<int64_t>(n_floats * sizeof(float)));
    if (!collects_) return;
    collected_.reserve(n_floats);
  }
  collected_.insert(collected_.end(), embeddings.begin(), embeddings.end());
  if (++n_collected_ == n_units) {
    cache_.insert(key_, std::move(collected_));
    collects_ = false;
  }
}

std::span<const float> CachedSource::unit(int image, int unit) {
  if (image != image_) open(image);
  if (held_ != nullptr) {
    const auto n_units = static_cast<size_t>(images_[static_cast<size_t>(image)].grid.n_tiles());
    const size_t n_floats = held_->size() / n_units;
    return std::span(*held_).subspan(static_cast<size_t>(unit) * n_floats, n_floats);
  }
  const std::span<const float> embeddings = source_.unit(image, unit);
  collect(unit, embeddings);
  return embeddings;
}

}  // namespace plateau::engine
