// Which token sits in which slot, per layer and kv head. Pure.
//
// Tokens are numbered by their order in the sequence. Invariants, checked by check_integrity():
//  1. Every (layer, head) holds the same number of tokens: n_held() <= n_slot().
//  2. The tokens of one (layer, head) ascend with the slot, so causality follows slot order.
//  3. No token is at or beyond n_total().
//
// Tested by tests/kv/slot_map_test.cc against a simple model.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace plateau::kv {

class SlotMap {
 public:
  /// REQUIRES: all positive.
  SlotMap(int n_layer, int n_head_kv, int n_slot);

  int n_layer() const { return n_layer_; }
  int n_head_kv() const { return n_head_kv_; }
  int n_slot() const { return n_slot_; }
  int n_held() const { return n_held_; }        // slots filled, the same everywhere
  int64_t n_total() const { return n_total_; }  // tokens ever appended

  /// The next n tokens of the sequence go to slots [n_held, n_held + n) of every layer and head.
  /// REQUIRES: n_held + n <= n_slot.
  void append(int n);

  /// The tokens in the slots of one head, ascending.
  std::span<const int32_t> tokens(int il, int head) const;

  /// Keeps only the given slots, ascending, of one head; they move to slots [0, kept.size()).
  /// After the last head of the last layer was given, call finish_keep().
  void keep(int il, int head, std::span<const int32_t> kept);
  /// All heads now hold n_kept tokens.
  void finish_keep(int n_kept);

  /// Throws kInternal, naming the broken invariant.
  void check_integrity() const;

 private:
  size_t offset(int il, int head) const;

  int n_layer_;
  int n_head_kv_;
  int n_slot_;
  int n_held_ = 0;
  int64_t n_total_ = 0;
  std::vector<int32_t> tokens_;  // [n_slot, n_head_kv, n_layer], ggml order
};

}  // namespace plateau::kv
