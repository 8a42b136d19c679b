// Embeddings of whole pictures, kept between requests within a fixed number of bytes.
// Tested by tests/engine/embedding_cache_test.cc.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/visual_source.h"

namespace plateau::engine {

/// The embeddings of all units of one picture, one unit after the other.
struct PictureEmbeddings {
  std::vector<float> values;  // [n_embd, tokens of all units]
  std::vector<size_t> ends;   // in `values`, by unit
};

/// Least recently used pictures go first. Not thread-safe.
class EmbeddingCache {
 public:
  /// 0: nothing is ever held.
  explicit EmbeddingCache(int64_t max_bytes) : max_bytes_(max_bytes) {}

  /// Null when it is not held. A picture that is found stays valid while the pointer lives.
  std::shared_ptr<const PictureEmbeddings> find(const std::string& key);
  /// Drops others until this many bytes fit. False, and nothing is dropped, when they never can.
  bool make_room(int64_t n_bytes);
  /// Holds the picture if it fits.
  void insert(const std::string& key, PictureEmbeddings embeddings);

  int64_t n_bytes() const { return n_bytes_; }

 private:
  using Entry = std::pair<std::string, std::shared_ptr<const PictureEmbeddings>>;

  int64_t max_bytes_;
  int64_t n_bytes_ = 0;
  std::list<Entry> entries_;  // the most recently used first
  std::unordered_map<std::string, std::list<Entry>::iterator> index_;
};

/// What the embeddings of a picture depend on besides the model: the file as it is now, and how it
/// is cut.
std::string embedding_key(const PlannedImage& image);

/// Units out of the cache where a picture is held whole, else from `source`, whose pictures are
/// then held if they fit. Films always come from `source`.
class CachedSource final : public UnitSource {
 public:
  /// All three must outlive the object.
  CachedSource(EmbeddingCache& cache, UnitSource& source, const std::vector<PlannedImage>& images)
      : cache_(cache), source_(source), images_(images) {}

  std::span<const float> unit(int image, int unit) override;

 private:
  void open(int image);
  void collect(int unit, std::span<const float> embeddings);

  EmbeddingCache& cache_;
  UnitSource& source_;
  const std::vector<PlannedImage>& images_;
  int image_ = -1;                                 // the picture that was asked for last
  std::string key_;                                // of it
  std::shared_ptr<const PictureEmbeddings> held_;  // of it; null: it comes from the source
  bool collects_ = false;
  PictureEmbeddings collected_;
};

}  // namespace plateau::engine
