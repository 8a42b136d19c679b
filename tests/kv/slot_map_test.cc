#include "kv/slot_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kv/draw.h"
#include "plateau/error.h"

namespace plateau::kv {
namespace {

using test::draw;

TEST(SlotMap, StartsEmpty) {
  const SlotMap slots(2, 3, 8);
  EXPECT_EQ(slots.n_layer(), 2);
  EXPECT_EQ(slots.n_head_kv(), 3);
  EXPECT_EQ(slots.n_slot(), 8);
  EXPECT_EQ(slots.n_held(), 0);
  EXPECT_EQ(slots.n_total(), 0);
  EXPECT_TRUE(slots.tokens(1, 2).empty());
  EXPECT_NO_THROW(slots.check_integrity());
}

// A list of tokens per layer and head is all that a slot map means.
TEST(SlotMap, DoesWhatAListPerHeadDoes) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    test::Rng rng(seed);
    const int n_layer = draw(rng, 1, 4), n_head = draw(rng, 1, 4), n_slot = draw(rng, 1, 40);
    SlotMap slots(n_layer, n_head, n_slot);
    std::vector<std::vector<int32_t>> model(static_cast<size_t>(n_layer * n_head));
    int n_held = 0;
    int32_t n_total = 0;
    for (int step = 0; step < 60; ++step) {
      if (draw(rng, 0, 1) == 0) {
        const int n = draw(rng, 0, n_slot - n_held);
        slots.append(n);
        for (auto& list : model) {
          for (int i = 0; i < n; ++i) list.push_back(n_total + i);
        }
        n_held += n;
        n_total += n;
      } else {
        const int n_keep = draw(rng, 0, n_held);
        for (int il = 0; il < n_layer; ++il) {
          for (int head = 0; head < n_head; ++head) {
            // n_keep slots out of n_held, each choice equally likely.
            std::vector<int32_t> kept;
            for (int32_t slot = 0; slot < n_held; ++slot) {
              const int n_wanted = n_keep - static_cast<int>(kept.size());
              if (n_wanted > 0 && draw(rng, 1, n_held - slot) <= n_wanted) kept.push_back(slot);
            }
            slots.keep(il, head, kept);
            std::vector<int32_t>& list = model[static_cast<size_t>(il * n_head + head)];
            std::vector<int32_t> left;
            for (const int32_t slot : kept) left.push_back(list[static_cast<size_t>(slot)]);
            list = left;
          }
        }
        slots.finish_keep(n_keep);
        n_held = n_keep;
      }
      ASSERT_EQ(slots.n_held(), n_held);
      ASSERT_EQ(slots.n_total(), n_total);
      for (int il = 0; il < n_layer; ++il) {
        for (int head = 0; head < n_head; ++head) {
          const auto tokens = slots.tokens(il, head);
          ASSERT_EQ(std::vector<int32_t>(tokens.begin(), tokens.end()),
                    model[static_cast<size_t>(il * n_head + head)]);
        }
      }
      ASSERT_NO_THROW(slots.check_integrity());
    }
  }
}

TEST(SlotMap, MoreThanTheSlotsIsABug) {
  SlotMap slots(1, 1, 4);
  slots.append(3);
  EXPECT_THROW(slots.append(2), Error);
  EXPECT_THROW(slots.append(-1), Error);
  EXPECT_EQ(slots.n_held(), 3);
  slots.append(1);
  EXPECT_EQ(slots.n_held(), 4);
}

TEST(SlotMap, KeptSlotsMustAscendAndBeHeld) {
  SlotMap slots(1, 2, 8);
  slots.append(4);
  for (const std::vector<int32_t>& kept :
       {std::vector<int32_t>{1, 1}, {2, 1}, {-1, 0}, {0, 4}, {0, 7}}) {
    EXPECT_THROW(slots.keep(0, 0, kept), Error);
  }
  EXPECT_THROW(slots.finish_keep(5), Error);
  EXPECT_THROW(slots.tokens(1, 0), Error);
  EXPECT_THROW(slots.tokens(0, 2), Error);
  EXPECT_THROW(slots.tokens(-1, 0), Error);
}

// A head that was forgotten holds what the others do not: the check finds it.
TEST(SlotMap, TheCheckFindsAnUnfinishedEviction) {
  SlotMap slots(1, 2, 8);
  slots.append(6);
  const std::vector<int32_t> kept = {3, 5};
  slots.keep(0, 0, kept);
  EXPECT_THROW(slots.check_integrity(), Error);  // 3 5 2 3 4 5
  try {
    slots.check_integrity();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInternal);
  }
}

TEST(SlotMap, NoLayersHeadsOrSlotsAreABug) {
  EXPECT_THROW(SlotMap(0, 1, 1), Error);
  EXPECT_THROW(SlotMap(1, 0, 1), Error);
  EXPECT_THROW(SlotMap(1, 1, 0), Error);
}

}  // namespace
}  // namespace plateau::kv
