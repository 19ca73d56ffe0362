#include "triax/server/answer.h"

#include <cmath>

namespace triax::server {

Exchange::Exchange(const HttpRequest& request, std::shared_ptr<Reply> reply, AccessLog& log,
                   HttpFields more, ErrorText error_text)
    : fields(std::move(more)), reply_(std::move(reply)), log_(log), error_text_(error_text) {
  record.method = request.method;
  record.path = request.path;
  record.peer = request.peer;
}

bool Exchange::send(int status, std::string body, const char* type) {
  HttpHead head{status, type, fields};
  if (!reply_->send(std::move(head), std::move(body))) return false;
  log(status);
  return true;
}

void Exchange::fail(const ApiError& error) {
  if (error.retry_after > 0) {
    fields.emplace_back("Retry-After", fmt::format("{}", std::ceil(error.retry_after)));
  }
  record.error = error.what();
  send(error.status(), error_text_(error));
}

void Exchange::stream(std::string idle) {
  record.stream = true;
  HttpHead head{200, "text/event-stream; charset=utf-8", fields};
  head.fields.emplace_back("Cache-Control", "no-cache");
  head.fields.emplace_back("X-Accel-Buffering", "no");
  reply_->stream(std::move(head), std::move(idle));
}

void Exchange::end(int status) {
  reply_->end();
  log(status);
}

void Exchange::fail(const ApiError& error, Framing& framing) {
  HttpHead head{error.status(), "application/json", fields};
  if (error.retry_after > 0) {
    head.fields.emplace_back("Retry-After", fmt::format("{}", std::ceil(error.retry_after)));
  }
  record.error = error.what();
  if (reply_->send(std::move(head), error_text_(error))) return log(error.status());
  write(framing.error(error));
  end(error.status());
}

void Exchange::gone() {
  record.gone = true;
  log(499);
}

void Exchange::log(int status) {
  record.status = status;
  record.seconds = watch_.seconds();
  log_.add(record);
}

Answer::Answer(std::unique_ptr<Exchange> exchange, std::unique_ptr<Framing> framing,
               std::vector<std::unique_ptr<AnswerReader>> readers, AccessLog& log, bool stream,
               std::size_t prompt_tokens, ChoiceCall ended)
    : exchange_(std::move(exchange)),
      framing_(std::move(framing)),
      readers_(std::move(readers)),
      log_(log),
      stream_(stream),
      ended_(std::move(ended)) {
  usage_.prompt = prompt_tokens;
}

Verdict Answer::on(const Event& event) noexcept {
  try {
    if (const auto* started = std::get_if<Started>(&event)) {
      usage_.cached = started->cached_tokens;
      exchange_->record.queue_seconds = started->queue_seconds;
    } else if (const auto* t = std::get_if<TokenOut>(&event)) {
      return token(*t);
    } else if (const auto* c = std::get_if<ChoiceEnd>(&event)) {
      choice_end(*c);
    } else if (const auto* end = std::get_if<RequestEnd>(&event)) {
      request_end(*end);
    }
    return Verdict::go_on;
  } catch (const std::exception& fault) {
    try {
      if (!error_) error_ = std::make_unique<ApiError>(api_error_of(fault));
      if (std::holds_alternative<RequestEnd>(event)) exchange_->fail(*error_, *framing_);
    } catch (const std::exception&) {
      // No memory even for this: the client is told nothing, and its connection ends in time.
      lost_ = true;
    }
    return Verdict::cancel;
  }
}

bool Answer::open() {
  if (!stream_ || opened_) return true;
  opened_ = true;
  return exchange_->write(framing_->open(usage_));
}

bool Answer::tell(const std::vector<AnswerPiece>& pieces) {
  if (!stream_) return true;
  std::string text;
  for (const AnswerPiece& piece : pieces) text += framing_->piece(piece);
  return text.empty() || exchange_->write(std::move(text));
}

Verdict Answer::token(const TokenOut& t) {
  const double now = exchange_->seconds();
  if (last_token_ == 0) {
    log_.first_token(now);
  } else {
    log_.token_gap(now - last_token_);
  }
  last_token_ = now;
  std::vector<AnswerPiece> pieces;
  const bool more = readers_.at(t.choice)->push(t, pieces);
  if (!open() || !tell(pieces)) {
    lost_ = true;
    return Verdict::cancel;
  }
  return more ? Verdict::go_on : Verdict::stop;
}

void Answer::choice_end(const ChoiceEnd& end) {
  if (end.reason == FinishReason::cancelled) {
    cancelled_ = true;
    return;
  }
  if (end.reason == FinishReason::expired) {
    error_ = std::make_unique<ApiError>(504, "timeout_error", "timeout", "timeout",
                                        "the request's time is over");
    return;
  }
  if (end.reason == FinishReason::failed) {
    const bool memory = end.error.find("no memory") != std::string::npos;
    error_ = std::make_unique<ApiError>(memory ? 503 : 500, "server_error",
                                        memory ? "no_memory" : "", "", end.error);
    if (memory) error_->retry_after = 5;
    return;
  }
  std::vector<AnswerPiece> pieces;
  AnswerReader& reader = *readers_.at(end.choice);
  reader.finish(end, pieces);
  if (ended_) ended_(end, reader);
  if (!open() || !tell(pieces)) lost_ = true;
}

void Answer::request_end(const RequestEnd& end) {
  usage_.completion = end.usage.completion_tokens;
  usage_.cached = std::min(end.usage.cached_tokens, usage_.prompt);
  std::vector<ChoiceDone> choices;
  for (const auto& reader : readers_) {
    choices.push_back(reader->done());
    usage_.reasoning += choices.back().reasoning_tokens;
  }
  Record& record = exchange_->record;
  record.usage = usage_;
  record.prompt_seconds = end.prompt_seconds;
  record.decode_seconds = end.decode_seconds;
  record.finish = chat::finish_name(choices.front().turn.finish);
  if (error_) {
    record.finish = "error";
    return exchange_->fail(*error_, *framing_);
  }
  if (lost_) return exchange_->gone();
  if (cancelled_) {
    record.finish = "cancelled";
    // Nobody reads this when it was the client that left.
    ApiError stopped(503, "server_error", "stopping", "", "the server is being stopped");
    stopped.retry_after = 10;
    return exchange_->fail(stopped, *framing_);
  }
  if (!stream_) {
    exchange_->send(200, framing_->whole(choices, usage_));
    return;
  }
  open();
  exchange_->write(framing_->close(choices, usage_));
  exchange_->end();
}

}  // namespace triax::server
