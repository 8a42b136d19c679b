#include "engine/prompt_builder.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/utf8.h"

namespace plateau::engine {
namespace {

/// Rendered text up to the next picture or film, and which one it is.
struct Segment {
  std::vector<model::RenderedText> text;
  int medium = -1;
};

/// A marker that stands for a picture while the template is rendered; in no user text, whose parts
/// are searched as they will stand: one after another.
std::string placeholder_stem(const std::vector<Message>& messages) {
  std::string text;
  for (const Message& message : messages) {
    for (const ContentPart& part : message.content) {
      if (const auto* text_part = std::get_if<TextPart>(&part)) text += text_part->text;
    }
  }
  std::string stem = "[[plateau-picture";
  while (text.find(stem) != std::string::npos) stem += "-";
  return stem;
}

std::vector<model::ChatMessage> with_placeholders(const std::vector<Message>& messages,
                                                  const std::string& stem,
                                                  const std::string& text_after) {
  std::vector<model::ChatMessage> result;
  int medium = 0;
  for (const Message& message : messages) {
    std::string content;
    for (const ContentPart& part : message.content) {
      if (const auto* text = std::get_if<TextPart>(&part)) {
        content += text->text;
      } else {
        content += fmt::format("{}:{}]]{}", stem, medium++, text_after);
      }
    }
    result.push_back({message.role, std::move(content)});
  }
  return result;
}

std::vector<Segment> split_at_pictures(const std::vector<model::RenderedText>& rendered,
                                       const std::string& stem) {
  std::vector<Segment> segments(1);
  for (const model::RenderedText& run : rendered) {
    std::string_view rest = run.text;
    while (true) {
      const size_t at = rest.find(stem);
      if (at == std::string_view::npos) break;
      const size_t end = rest.find("]]", at);
      PLATEAU_CHECK(end != std::string_view::npos);
      const std::string number(rest.substr(at + stem.size() + 1, end - at - stem.size() - 1));
      if (at > 0) segments.back().text.push_back({std::string(rest.substr(0, at)), run.from_user});
      segments.back().medium = std::stoi(number);
      segments.emplace_back();
      rest.remove_prefix(end + 2);
    }
    if (!rest.empty()) segments.back().text.push_back({std::string(rest), run.from_user});
  }
  return segments;
}

std::vector<model::Token> tokenize(const std::vector<model::RenderedText>& runs,
                                   const model::Vocab& vocab) {
  const bool any_special_in_user_text =
      std::any_of(runs.begin(), runs.end(), [&](const model::RenderedText& run) {
        return run.from_user && vocab.tokenize(run.text, /*parse_special=*/true) !=
                                    vocab.tokenize(run.text, /*parse_special=*/false);
      });
  if (!any_special_in_user_text) {
    std::string text;
    for (const model::RenderedText& run : runs) text += run.text;
    return vocab.tokenize(text, /*parse_special=*/true);
  }
  std::vector<model::Token> tokens;
  for (const model::RenderedText& run : runs) {
    const auto more = vocab.tokenize(run.text, /*parse_special=*/!run.from_user);
    tokens.insert(tokens.end(), more.begin(), more.end());
  }
  return tokens;
}

model::Token require_special(const model::Vocab& vocab, const std::string& text) {
  const auto token = vocab.find_special(text);
  if (!token) {
    throw_error(ErrorCode::kUnsupported,
                "[model] expected token {} in the vocabulary, found none; this text model was not "
                "trained with pictures",
                text);
  }
  return *token;
}

/// A picture, or a film as one: framed by its markers.
void add_medium(const VisualLayout& layout, model::Token begin, model::Token end,
                PromptPlan& plan) {
  plan.add_marker({begin}, /*binds_next=*/true);
  plan.add_medium(layout);
  plan.add_marker({end}, /*binds_next=*/false);
}

/// A film as a row of pictures, each with its label and in markers of its own.
void add_labelled_medium(const VisualLayout& layout, model::Token begin, model::Token end,
                         const model::Vocab& vocab, PromptPlan& plan) {
  SliceText text;
  text.close = end;
  text.ends.reserve(layout.slice_labels.size());
  for (const std::string& label : layout.slice_labels) {
    const std::vector<model::Token> tokens = vocab.tokenize(label, /*parse_special=*/false);
    text.tokens.insert(text.tokens.end(), tokens.begin(), tokens.end());
    text.tokens.push_back(begin);
    text.ends.push_back(static_cast<uint32_t>(text.tokens.size()));
  }
  text.tokens.shrink_to_fit();
  plan.begin_medium();
  plan.add_labelled_slices(layout.units, std::move(text));
}

/// A picture whose units stand between tokens of its own. Those within it, of which there may be
/// many, may be evicted; its frame may not.
void add_marked_medium(const VisualLayout& layout, PromptPlan& plan) {
  plan.begin_medium();
  const std::span<const UnitLayout> units(layout.units);
  auto marker = layout.markers.begin();
  const auto next_marker = [&](size_t unit) {
    if (marker == layout.markers.end() || static_cast<size_t>(marker->unit) != unit) return;
    if (unit == 0 || unit == units.size()) {
      plan.add_marker(marker->tokens, /*binds_next=*/unit == 0);
    } else {
      plan.add_label(marker->tokens, /*binds_next=*/true);
    }
    ++marker;
  };
  for (size_t i = 0; i < units.size(); ++i) {
    next_marker(i);
    plan.add_units(units.subspan(i, 1));
  }
  next_marker(units.size());
  PLATEAU_CHECK(marker == layout.markers.end());
}

/// Templates and tokenizers know no other encoding.
void require_utf8(const std::vector<Message>& messages) {
  for (const Message& message : messages) {
    for (const ContentPart& part : message.content) {
      const auto* text = std::get_if<TextPart>(&part);
      if (text != nullptr && !is_valid_utf8(text->text)) {
        throw_error(ErrorCode::kInvalidArgument,
                    "[prompt] expected text in UTF-8, got other bytes; try to convert it first");
      }
    }
  }
}

}  // namespace

VisualMarkers markers_of(model::Architecture architecture) {
  switch (architecture) {
    case model::Architecture::kLlama:
    case model::Architecture::kQwen2:
    case model::Architecture::kQwen3:
      return {.begin = "<img>", .end = "</img>", .text_after = "\n"};
    case model::Architecture::kQwen2VL:
      return {.begin = "<|vision_start|>", .end = "<|vision_end|>", .text_after = ""};
  }
  PLATEAU_CHECK(false);
  return {};
}

PromptPlan build_prompt(const std::vector<Message>& messages,
                        const std::vector<VisualLayout>& media,
                        const model::ChatTemplate& chat_template, const model::Vocab& vocab,
                        const PromptOptions& options) {
  require_utf8(messages);
  const std::string stem = placeholder_stem(messages);
  const auto rendered =
      chat_template.render(with_placeholders(messages, stem, options.markers.text_after));
  std::vector<Segment> segments = split_at_pictures(rendered, stem);

  PromptPlan plan(options.positions);
  size_t n_pieces = segments.size() + 2 * media.size();
  for (const VisualLayout& layout : media) {
    n_pieces += layout.units.size() + layout.markers.size();
  }
  plan.reserve(n_pieces);
  std::vector<bool> placed(media.size(), false);
  for (size_t i = 0; i < segments.size(); ++i) {
    std::vector<model::Token> tokens = tokenize(segments[i].text, vocab);
    if (i == 0) {
      const auto bos = vocab.leading_bos();
      if (bos && (tokens.empty() || tokens.front() != *bos)) tokens.insert(tokens.begin(), *bos);
    }
    plan.add_text(tokens);
    if (segments[i].medium < 0) continue;
    const auto medium = static_cast<size_t>(segments[i].medium);
    PLATEAU_CHECK(medium < media.size());
    placed[medium] = true;
    if (media[medium].has_own_markers) {
      add_marked_medium(media[medium], plan);
      continue;
    }
    const model::Token begin = require_special(vocab, options.markers.begin);
    const model::Token end = require_special(vocab, options.markers.end);
    if (media[medium].slice_labels.empty()) {
      add_medium(media[medium], begin, end, plan);
    } else {
      add_labelled_medium(media[medium], begin, end, vocab, plan);
    }
  }
  // A template that drops content would otherwise answer without having seen the picture.
  if (std::find(placed.begin(), placed.end(), false) != placed.end()) {
    throw_error(ErrorCode::kUnsupported,
                "[chat template] the model's template drops a picture from the conversation; try "
                "--chat-template-file");
  }
  if (plan.n_tokens() == 0) {
    throw_error(ErrorCode::kInvalidArgument, "[prompt] expected text or a picture, got neither");
  }
  return plan;
}

}  // namespace plateau::engine
