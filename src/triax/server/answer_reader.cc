#include "triax/server/answer_reader.h"

#include <algorithm>

#include "triax/tokenizer/utf8.h"

namespace triax::server {
namespace {

using chat::Channel;
using chat::TurnEvent;

JsonValue one_logprob(const Tokenizer& tokenizer, std::int32_t id, float logprob) {
  const std::string bytes(id < tokenizer.vocab_size() ? tokenizer.token_bytes(id) : "");
  JsonValue numbers = JsonValue::array();
  for (const char c : bytes) numbers.push(num(static_cast<unsigned char>(c)));
  // JSON has no infinities: an impossible token is as unlikely as OpenAI writes it.
  return object({{"token", str(utf8_valid(bytes) ? bytes : utf8_repair(bytes))},
                 {"logprob", real(std::max(logprob, -9999.0f))},
                 {"bytes", numbers}});
}

bool ends_with(const std::vector<std::int32_t>& ids, const std::vector<std::int32_t>& tail) {
  return ids.size() >= tail.size() && std::equal(tail.rbegin(), tail.rend(), ids.rbegin());
}

}  // namespace

JsonValue logprob_json(const Tokenizer& tokenizer, const TokenOut& token) {
  JsonValue out = one_logprob(tokenizer, token.id, token.logprob);
  JsonValue top = JsonValue::array();
  for (const TokenLogprob& t : token.top) top.push(one_logprob(tokenizer, t.id, t.logprob));
  out.set("top_logprobs", std::move(top));
  return out;
}

void AnswerReader::tell(AnswerPiece piece, std::vector<AnswerPiece>& out) {
  chat::Turn& turn = done_.turn;
  const TurnEvent& event = piece.event;
  piece.choice = done_.choice;
  switch (event.kind) {
    case TurnEvent::Kind::reasoning:
      if (!turn.reasoning) turn.reasoning.emplace();
      *turn.reasoning += event.text;
      break;
    case TurnEvent::Kind::content:
      turn.content += event.text;
      done_.logprobs.insert(done_.logprobs.end(), piece.logprobs.begin(), piece.logprobs.end());
      break;
    case TurnEvent::Kind::call:
      turn.calls.push_back({event.text, ""});
      done_.call_ids.push_back(piece.call_id);
      break;
    case TurnEvent::Kind::arguments:
      turn.calls.back().arguments += event.text;
      break;
  }
  out.push_back(std::move(piece));
}

ChatAnswerReader::ChatAnswerReader(const Tokenizer& tokenizer, Options options)
    : tokenizer_(tokenizer),
      options_(std::move(options)),
      reader_(tokenizer, {options_.opened, options_.ignore_end, false}) {
  done_.choice = options_.choice;
  if (options_.opened == Channel::think) done_.turn.reasoning.emplace();
  if (!options_.stop.empty()) stop_text_.emplace(options_.stop);
}

bool ChatAnswerReader::push(const TokenOut& token, std::vector<AnswerPiece>& out) {
  const Channel before = reader_.in_text();
  const bool ordinary = token.id < tokenizer_.rank_count();
  if (before == Channel::think) ++done_.reasoning_tokens;
  if (options_.logprobs && before == Channel::response && ordinary) {
    logprobs_.push_back(logprob_json(tokenizer_, token));
  }
  return take(reader_.push(token.id), out) && !reader_.ended();
}

bool ChatAnswerReader::take(const std::vector<TurnEvent>& events, std::vector<AnswerPiece>& out) {
  for (const TurnEvent& event : events) {
    AnswerPiece piece;
    piece.event = event;
    if (event.kind == TurnEvent::Kind::content) {
      piece.logprobs.swap(logprobs_);
      if (!content(std::move(piece), out)) return false;
      continue;
    }
    let_go(held_.size(), out);
    if (stop_text_) stop_text_.emplace(options_.stop);
    if (event.kind == TurnEvent::Kind::call) piece.call_id = options_.call_id();
    tell(std::move(piece), out);
  }
  return true;
}

bool ChatAnswerReader::content(AnswerPiece piece, std::vector<AnswerPiece>& out) {
  if (!stop_text_) {
    tell(std::move(piece), out);
    return true;
  }
  const auto found = stop_text_->push(piece.event.text);
  held_.push_back(std::move(piece));
  if (!found) {
    let_go(stop_text_->release(), out);
    return true;
  }
  if (found->keep_tokens > 0) {
    held_.resize(found->keep_tokens);
    held_.back().event.text.resize(found->keep_bytes);
    let_go(held_.size(), out);
  }
  held_.clear();
  done_.stop = options_.stop[found->stop];
  return false;
}

void ChatAnswerReader::let_go(std::size_t count, std::vector<AnswerPiece>& out) {
  for (; count > 0; --count) {
    tell(std::move(held_.front()), out);
    held_.pop_front();
  }
}

void ChatAnswerReader::finish(const ChoiceEnd& end, std::vector<AnswerPiece>& out) {
  const Channel open = reader_.in_text();
  const bool by_stop_id = end.stop_id.has_value();
  done_.tokens = end.ids.size() + (by_stop_id ? 1 : 0);
  if (done_.stop) {
    done_.turn.finish = chat::TurnFinish::stop;
    return;
  }
  const bool cut = end.reason != FinishReason::stop;
  take(reader_.finish(cut), out);
  if (!done_.stop) let_go(held_.size(), out);
  done_.turn.finish = reader_.turn().finish;
  // As the same turn is rendered again: closed as it was, or closed where it was cut.
  std::vector<std::int32_t> tail = chat::encode_segments(chat::closing(Channel::none), tokenizer_);
  tail.pop_back();  // <|end_of_msg|>
  if (done_.stop || options_.ignore_end) return;
  if (ends_with(end.ids, tail)) {
    body_ = end.ids;
    body_.push_back(tokenizer_.required_id(Role::EndOfMsg));
  } else if (open != Channel::none && done_.turn.calls.empty()) {
    body_ = end.ids;
    const auto close = chat::encode_segments(chat::closing(open), tokenizer_);
    body_.insert(body_.end(), close.begin(), close.end());
  }
}

bool TextAnswerReader::push(const TokenOut& token, std::vector<AnswerPiece>& out) {
  AnswerPiece piece;
  piece.event.kind = TurnEvent::Kind::content;
  if (token.id >= tokenizer_.rank_count()) {  // special tokens are no text
    piece.event.text = decoder_.finish();
  } else if (token.keep_bytes == kNone) {
    piece.event.text = decoder_.push(token.id);
  } else {
    std::string bytes(decoder_.held());
    bytes += tokenizer_.token_bytes(token.id).substr(0, token.keep_bytes);
    decoder_.finish();
    piece.event.text = utf8_repair(bytes);
  }
  if (logprobs_) piece.logprobs.push_back(logprob_json(tokenizer_, token));
  if (!piece.event.text.empty() || logprobs_) tell(std::move(piece), out);
  return true;
}

void TextAnswerReader::finish(const ChoiceEnd& end, std::vector<AnswerPiece>& out) {
  done_.tokens = end.ids.size() + (end.stop_id ? 1 : 0);
  AnswerPiece piece;
  piece.event.kind = TurnEvent::Kind::content;
  piece.event.text = decoder_.finish();
  if (!piece.event.text.empty()) tell(std::move(piece), out);
  if (end.stop_string) done_.stop = stop_.at(*end.stop_string);
  done_.turn.finish =
      end.reason == FinishReason::stop ? chat::TurnFinish::stop : chat::TurnFinish::length;
}

}  // namespace triax::server
