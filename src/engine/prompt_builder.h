// Turns a conversation into a PromptPlan: renders the chat template, puts each picture where its
// part stands, and tokenizes the text around it. Tested by tests/engine/prompt_builder_test.cc.
#pragma once

#include <vector>

#include "engine/prompt_plan.h"
#include "model/chat_template.h"
#include "model/vocab.h"
#include "plateau/request.h"

namespace plateau::engine {

/// The tokens that one picture becomes: tiles of n_grid_rows x n_grid_cols tokens each, in reading
/// order, then the thumbnail.
struct ImageLayout {
  int n_tile_rows = 1;
  int n_tile_cols = 1;
  bool thumbnail = false;
  int n_grid_rows = 1;
  int n_grid_cols = 1;
};

/// `images` holds one layout per ImagePart, in prompt order.
/// User text is tokenized as plain text: special tokens come from the template and from picture
/// markers only. Where it holds no special-token text, template and user text are tokenized in one
/// piece, so that ids equal llama.cpp's.
/// Errors: kInvalidArgument (the template refuses the conversation), kUnsupported (the vocabulary
/// has no picture markers).
PromptPlan build_prompt(const std::vector<Message>& messages,
                        const std::vector<ImageLayout>& images,
                        const model::ChatTemplate& chat_template, const model::Vocab& vocab);

}  // namespace plateau::engine
