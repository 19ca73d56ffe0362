// One answer under way: from the engine's events to what the client is sent.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "triax/engine/engine.h"
#include "triax/server/access_log.h"
#include "triax/server/answer_reader.h"
#include "triax/server/framing.h"
#include "triax/server/http.h"

namespace triax::server {

// A request's reply with what is known of it for the log, which gets one line, at its end.
class Exchange {
 public:
  using ErrorText = std::string (*)(const ApiError&);

  Exchange(const HttpRequest& request, std::shared_ptr<Reply> reply, AccessLog& log,
           HttpFields fields, ErrorText error_text);

  Record record;
  HttpFields fields;  // of every answer

  bool send(int status, std::string body, const char* type = "application/json");
  void fail(const ApiError& error);  // a whole answer
  void stream(std::string idle);
  bool write(std::string text) { return reply_->write(std::move(text)); }
  void end(int status = 200);
  // As fail(), in the stream where its head is out.
  void fail(const ApiError& error, Framing& framing);
  void gone();  // the client left; nothing is sent
  void on_gone(std::function<void()> call) { reply_->on_gone(std::move(call)); }
  double seconds() const { return watch_.seconds(); }

 private:
  void log(int status);

  std::shared_ptr<Reply> reply_;
  AccessLog& log_;
  ErrorText error_text_;
  Stopwatch watch_;
};

// The sink of a request. All of it runs on the engine's thread.
class Answer {
 public:
  // Told when a choice has ended well, before its last piece is sent.
  using ChoiceCall = std::function<void(const ChoiceEnd&, const AnswerReader&)>;

  Answer(std::unique_ptr<Exchange> exchange, std::unique_ptr<Framing> framing,
         std::vector<std::unique_ptr<AnswerReader>> readers, AccessLog& log, bool stream,
         std::size_t prompt_tokens, ChoiceCall ended);

  Verdict on(const Event& event) noexcept;
  Exchange& exchange() { return *exchange_; }
  Framing& framing() { return *framing_; }

 private:
  Verdict token(const TokenOut& token);
  void choice_end(const ChoiceEnd& end);
  void request_end(const RequestEnd& end);
  bool tell(const std::vector<AnswerPiece>& pieces);
  bool open();

  std::unique_ptr<Exchange> exchange_;
  std::unique_ptr<Framing> framing_;
  std::vector<std::unique_ptr<AnswerReader>> readers_;
  AccessLog& log_;
  bool stream_, opened_ = false, lost_ = false;
  AnswerUsage usage_;
  ChoiceCall ended_;
  std::unique_ptr<ApiError> error_;
  bool cancelled_ = false;
  double last_token_ = 0;
};

}  // namespace triax::server
