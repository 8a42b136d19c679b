#include "model/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "support/expect_error.h"

namespace plateau::model {
namespace {

using test::expect_error;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<Token> draw(const SamplingOptions& options, const std::vector<float>& logits, int n) {
  Sampler sampler(options);
  std::vector<Token> tokens;
  for (int i = 0; i < n; ++i) tokens.push_back(sampler.sample(logits));
  return tokens;
}

std::set<Token> distinct(const std::vector<Token>& tokens) {
  return {tokens.begin(), tokens.end()};
}

TEST(Sampler, TemperatureZeroPicksTheLikeliestAndTheLowerIdOnATie) {
  Sampler sampler(SamplingOptions{});
  EXPECT_EQ(sampler.sample(std::vector<float>{1, 5, 2}), 1);
  EXPECT_EQ(sampler.sample(std::vector<float>{1, 5, 5, 5}), 1);
  EXPECT_EQ(sampler.sample(std::vector<float>{-3}), 0);
  EXPECT_EQ(sampler.sample(std::vector<float>(1000, 0.0F)), 0);
}

TEST(Sampler, TheSeedDecides) {
  const std::vector<float> logits(50, 0.0F);
  const SamplingOptions options = {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0, .seed = 7};
  SamplingOptions other = options;
  other.seed = 8;
  EXPECT_EQ(draw(options, logits, 40), draw(options, logits, 40));
  EXPECT_NE(draw(options, logits, 40), draw(other, logits, 40));
  EXPECT_GT(distinct(draw(options, logits, 40)).size(), 10U);
}

TEST(Sampler, FollowsTheProbabilitiesAtItsTemperature) {
  // softmax of {0, log 3} is {1/4, 3/4}; at half the temperature {1/10, 9/10}.
  const std::vector<float> logits = {0.0F, std::log(3.0F)};
  const auto share = [&](float temperature) {
    double ones = 0;
    for (const Token token :
         draw({.temperature = temperature, .top_k = 0, .top_p = 1, .min_p = 0}, logits, 10000)) {
      ones += token;
    }
    return ones / 10000;
  };
  EXPECT_NEAR(share(1.0F), 0.75, 0.02);
  EXPECT_NEAR(share(0.5F), 0.90, 0.02);
}

TEST(Sampler, EachFilterDropsTheUnlikely) {
  const std::vector<float> logits = {std::log(0.6F), std::log(0.25F), std::log(0.1F),
                                     std::log(0.05F)};
  const SamplingOptions all = {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0};
  EXPECT_EQ(distinct(draw(all, logits, 1000)), (std::set<Token>{0, 1, 2, 3}));
  SamplingOptions options = all;
  options.top_k = 2;
  EXPECT_EQ(distinct(draw(options, logits, 1000)), (std::set<Token>{0, 1}));
  options = all;
  options.top_p = 0.9F;
  EXPECT_EQ(distinct(draw(options, logits, 1000)), (std::set<Token>{0, 1, 2}));
  options = all;
  options.min_p = 0.3F;
  EXPECT_EQ(distinct(draw(options, logits, 1000)), (std::set<Token>{0, 1}));
  options.min_p = 1;
  EXPECT_EQ(distinct(draw(options, logits, 100)), (std::set<Token>{0}));
}

TEST(Sampler, OptionsOutOfRangeAreNamed) {
  const auto refuse = [](const SamplingOptions& options, const char* name) {
    expect_error([&] { Sampler{options}; }, ErrorCode::kInvalidArgument, {name, "expected"});
  };
  refuse({.temperature = -0.1F}, "--temp");
  refuse({.temperature = kNan}, "--temp");
  refuse({.temperature = std::numeric_limits<float>::infinity()}, "--temp");
  refuse({.top_k = -1}, "--top-k");
  for (const float value : {0.0F, 1.1F, -1.0F, kNan}) refuse({.top_p = value}, "--top-p");
  for (const float value : {1.1F, -0.1F, kNan}) refuse({.min_p = value}, "--min-p");
}

// A broken model's logits must not crash; which token comes out does not matter.
TEST(Sampler, LogitsThatAreNotNumbersGiveSomeToken) {
  for (const float temperature : {0.0F, 1.0F}) {
    for (const float value :
         {kNan, std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
      for (const std::vector<float>& logits :
           {std::vector<float>(60, value), std::vector<float>{0, value, 1}}) {
        const Token token = draw({.temperature = temperature}, logits, 1).front();
        EXPECT_GE(token, 0);
        EXPECT_LT(token, static_cast<Token>(logits.size()));
      }
    }
  }
}

TEST(Sampler, WorksAfterAMove) {
  Sampler first(SamplingOptions{});
  Sampler second = std::move(first);
  EXPECT_EQ(second.sample(std::vector<float>{0, 1}), 1);
}

}  // namespace
}  // namespace plateau::model
