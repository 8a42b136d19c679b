// Turns a conversation into a PromptPlan: renders the chat template, puts each picture where its
// part stands, and tokenizes the text around it. Tested by tests/engine/prompt_builder_test.cc.
#pragma once

#include <string>
#include <vector>

#include "engine/prompt_plan.h"
#include "engine/visual_layout.h"
#include "model/chat_template.h"
#include "model/model_config.h"
#include "model/vocab.h"
#include "plateau/request.h"

namespace plateau::engine {

/// How a family frames a picture or film, all its units together.
struct VisualMarkers {
  std::string begin;  // control tokens
  std::string end;
  std::string text_after;  // what the family's chats have between it and the text that follows
};

/// What a text model was trained with: <img> </img> and a line break (InternVL), <|vision_start|>
/// <|vision_end|> (Qwen2-VL).
VisualMarkers markers_of(model::Architecture architecture);

struct PromptOptions {
  VisualMarkers markers;
  PositionRule positions = PositionRule::kSequential;
};

/// `media` holds one layout per picture or film of the messages, in prompt order.
/// User text is tokenized as plain text: special tokens come from the template and from picture
/// markers only. Where it holds no special-token text, template and user text are tokenized in one
/// piece, so that ids equal llama.cpp's.
/// Errors: kInvalidArgument (text that is no UTF-8; the template refuses the conversation),
/// kUnsupported (the vocabulary has no picture markers).
PromptPlan build_prompt(const std::vector<Message>& messages,
                        const std::vector<VisualLayout>& media,
                        const model::ChatTemplate& chat_template, const model::Vocab& vocab,
                        const PromptOptions& options);

}  // namespace plateau::engine
