#include "triax/chat/reader.h"

#include <algorithm>

#include "triax/chat/tag.h"
#include "triax/tokenizer/utf8.h"

namespace triax::chat {
namespace {

bool is_blank(std::string_view text) {
  return json_trim(text).empty();
}

}  // namespace

const char* finish_name(TurnFinish finish) {
  switch (finish) {
    case TurnFinish::stop:
      return "stop";
    case TurnFinish::length:
      return "length";
    case TurnFinish::tool_calls:
      break;
  }
  return "tool_calls";
}

TurnReader::TurnReader(const Tokenizer& tokenizer, const ReaderOptions& options)
    : tokenizer_(&tokenizer),
      options_(options),
      decoder_(tokenizer),
      open_(tokenizer.required_id(Role::Open)),
      close_(tokenizer.required_id(Role::Close)),
      sep_(tokenizer.required_id(Role::Sep)),
      end_of_msg_(tokenizer.required_id(Role::EndOfMsg)),
      stop_ids_(tokenizer.stop_ids()),
      place_(options.opened == Channel::think      ? Place::think
             : options.opened == Channel::response ? Place::response
                                                   : Place::outside) {
  if (options.opened == Channel::think) turn_.reasoning.emplace();
}

const std::vector<TurnEvent>& TurnReader::push(std::int32_t id) {
  events_.clear();
  if (ended_) return events_;
  if (id == open_) {
    structure(Role::Open);
  } else if (id == close_) {
    structure(Role::Close);
  } else if (id == sep_) {
    structure(Role::Sep);
  } else if (std::find(stop_ids_.begin(), stop_ids_.end(), id) != stop_ids_.end()) {
    structure(Role::EndOfMsg);
  } else if (id >= 0 && id < tokenizer_->rank_count()) {
    text_id(id);
  }  // Other special tokens, and ids that the vocabulary lacks, say nothing.
  return events_;
}

const std::vector<TurnEvent>& TurnReader::finish(bool hit_length) {
  events_.clear();
  // What ended by itself was not cut, even when the limit was met. A cut closes nothing: what is
  // held (a tag, the start of a code point, a number) is lost.
  const bool cut = hit_length && !ended_;
  if (!ended_ && !cut) {
    if (tag_ != Tag::none) {
      end_tag();
    } else {
      flush_decoder();
    }
    leave_channel();
  }
  turn_.finish = cut                   ? TurnFinish::length
                 : turn_.calls.empty() ? TurnFinish::stop
                                       : TurnFinish::tool_calls;
  ended_ = true;
  return events_;
}

Channel TurnReader::in_text() const {
  if (ended_ || tag_ != Tag::none) return Channel::none;
  return place_ == Place::think      ? Channel::think
         : place_ == Place::response ? Channel::response
                                     : Channel::none;
}

// A structure token ends a pending tag, whatever it is.
void TurnReader::structure(Role role) {
  if (tag_ != Tag::none) {
    end_tag();
    if (ended_) return;
  } else {
    flush_decoder();
  }
  spaces_.clear();
  if (role == Role::Open || role == Role::Close) {
    tag_ = role == Role::Open ? Tag::open : Tag::close;
    header_.clear();
  } else if (role == Role::EndOfMsg) {
    end_turn();
  }
}

void TurnReader::text_id(std::int32_t id) {
  if (tag_ != Tag::none) {
    header_ += tokenizer_->token_bytes(id);
  } else {
    text(decoder_.push(id));
  }
}

// The start of a code point that structure cuts off is U+FFFD.
void TurnReader::flush_decoder() {
  text(decoder_.finish());
}

void TurnReader::text(std::string_view piece) {
  if (piece.empty()) return;
  switch (place_) {
    case Place::think:
      emit(TurnEvent::Kind::reasoning, piece);
      return;
    case Place::response:
      emit(TurnEvent::Kind::content, piece);
      return;
    case Place::outside:
      outside_text(piece);
      return;
    case Place::json:
      if (named_ && !dropped_) emit(TurnEvent::Kind::arguments, piece);
      return;
    case Place::argument:
      if (dropped_) return;
      if (string_) {
        std::string escaped;
        append_escaped(escaped, piece);
        emit(TurnEvent::Kind::arguments, escaped);
      } else {
        value_ += piece;
      }
      return;
    case Place::tools:
    case Place::call:
      return;
  }
}

// Content, unless it is only white space.
void TurnReader::outside_text(std::string_view piece) {
  spaces_ += piece;
  if (is_blank(spaces_)) return;
  emit(TurnEvent::Kind::content, spaces_);
  spaces_.clear();
  place_ = Place::response;
}

void TurnReader::end_tag() {
  const Tag tag = tag_;
  tag_ = Tag::none;
  const std::string header = utf8_valid(header_) ? header_ : utf8_repair(header_);
  if (tag == Tag::open) {
    open_tag(header);
  } else {
    close_tag(tag_name(header));
  }
}

void TurnReader::open_tag(std::string_view header) {
  const std::string_view name = tag_name(header);
  if (name == "think") {
    leave_channel();
    place_ = Place::think;
    if (!turn_.reasoning) turn_.reasoning.emplace();
  } else if (name == "response") {
    leave_channel();
    place_ = Place::response;
  } else if (name == "tools") {
    leave_channel();
    place_ = Place::tools;
    in_tools_ = true;
  } else if (name == "call") {
    open_call(header);
  } else if (name == "argument") {
    open_argument(header);
  } else if (name == "json") {
    open_json();
  } else if (name == "message" && tag_attribute(header, "role").value_or("") != "assistant") {
    end_turn();  // somebody else's message begins: this one is over
  }
}

void TurnReader::close_tag(std::string_view name) {
  if (name == "think" || name == "response" || name == "tools") {
    leave_channel();
  } else if (name == "message") {
    end_turn();
  } else if (name == "call") {
    end_call();
  } else if (name == "argument" || name == "json") {
    end_value();
  }
}

// Whatever is open ends: argument, call, tools, channel.
void TurnReader::leave_channel() {
  end_call();
  in_tools_ = false;
  place_ = Place::outside;
}

void TurnReader::end_turn() {
  leave_channel();
  ended_ = !options_.ignore_end;
}

void TurnReader::open_call(std::string_view header) {
  end_call();
  place_ = Place::call;
  const std::string name = tag_attribute(header, "tool").value_or("");
  named_ = !name.empty();
  raw_ = false;
  arguments_ = 0;
  if (!named_) return;
  turn_.calls.push_back({name, ""});
  events_.push_back({TurnEvent::Kind::call, turn_.calls.size() - 1, name});
}

void TurnReader::open_argument(std::string_view header) {
  end_value();
  if (place_ != Place::call) return;
  place_ = Place::argument;
  const std::optional<std::string> key = tag_attribute(header, "key");
  dropped_ = !named_ || raw_ || !key;
  value_.clear();
  if (dropped_) return;
  string_ = tag_attribute(header, "type").value_or("") == "string";
  std::string start = arguments_++ == 0 ? "{" : ", ";
  start += json_quote(*key) + ": ";
  if (string_) start += '"';
  emit(TurnEvent::Kind::arguments, start);
}

void TurnReader::open_json() {
  end_value();
  if (place_ != Place::call) return;
  place_ = Place::json;
  dropped_ = raw_ || arguments_ > 0;
  raw_ = raw_ || arguments_ == 0;
}

// An argument or a json block ends.
void TurnReader::end_value() {
  if (place_ == Place::argument && !dropped_) {
    if (string_) {
      emit(TurnEvent::Kind::arguments, "\"");
    } else {
      const bool literal = is_json(value_, !options_.strict_json);
      emit(TurnEvent::Kind::arguments, literal ? json_trim(value_) : json_quote(value_));
    }
  }
  if (place_ == Place::argument || place_ == Place::json) place_ = Place::call;
}

void TurnReader::end_call() {
  end_value();
  if (place_ != Place::call) return;
  if (named_ && !raw_) emit(TurnEvent::Kind::arguments, arguments_ == 0 ? "{}" : "}");
  place_ = in_tools_ ? Place::tools : Place::outside;
}

void TurnReader::emit(TurnEvent::Kind kind, std::string_view piece) {
  std::size_t index = 0;
  if (kind == TurnEvent::Kind::reasoning) {
    *turn_.reasoning += piece;
  } else if (kind == TurnEvent::Kind::content) {
    turn_.content += piece;
  } else {
    index = turn_.calls.size() - 1;
    turn_.calls.back().arguments += piece;
  }
  // One event for what one id completes.
  if (!events_.empty() && events_.back().kind == kind && events_.back().index == index) {
    events_.back().text += piece;
  } else {
    events_.push_back({kind, index, std::string(piece)});
  }
}

Message message_of(const Turn& turn) {
  Message out;
  out.author = Author::assistant;
  if (!turn.content.empty()) out.content.push_back({Part::Kind::text, turn.content});
  out.reasoning = turn.reasoning.value_or("");
  for (std::size_t i = 0; i < turn.calls.size(); ++i) {
    out.tool_calls.push_back({fmt::format("call_{}", i), turn.calls[i].name,
                              JsonValue::string(turn.calls[i].arguments)});
  }
  return out;
}

}  // namespace triax::chat
