// Conversations of training data as token ids, in K3's chat form. Internal to train/.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "triax/tokenizer/tokenizer.h"

namespace triax::train {

// Ids of a conversation (JSON: {"messages": [...], "tools": [...], "thinking_effort": ...}) as the
// chat module renders it; learn [ids] is 1 for tokens that the assistant writes, those that end its
// turn included. Throws Error with `where` before the message.
std::vector<std::int32_t> render_conversation(std::string_view line, std::string_view where,
                                              const Tokenizer& tokenizer,
                                              std::vector<std::uint8_t>& learn);

// All texts in the messages, one after the other: what a tokenizer is made from.
std::string conversation_text(std::string_view line, std::string_view where);

}  // namespace triax::train
