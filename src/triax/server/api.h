// The routes of the server: requests in, answers out, whatever carries them.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "triax/engine/engine.h"
#include "triax/server/access_log.h"
#include "triax/server/answer.h"
#include "triax/server/chat_prompt.h"
#include "triax/server/chat_request.h"
#include "triax/server/http.h"
#include "triax/server/settings.h"
#include "triax/tokenizer/tokenizer.h"

namespace triax::server {

struct ApiOptions {
  std::string model = "kimi-k3";  // its name in answers
  Profile profile = Profile::open;
  std::vector<std::string> api_keys;  // empty: none is asked for
  std::string cors;                   // origin that browsers may call from; empty: none
  bool remember_turns = true;         // generated ids stand in later prompts
  std::vector<std::int32_t> stop_ids;
};

class Api {
 public:
  // Everything outlives the object, and the engine ends before it.
  Api(Engine& engine, const Tokenizer& tokenizer, ApiOptions options, AccessLog& log);

  // Never throws.
  void handle(HttpRequest request, std::shared_ptr<Reply> reply);
  // From now on /health says that the server ends.
  void stopping() { stopping_ = true; }
  // Where /metrics asks for the connections.
  void set_http_counts(std::function<HttpCounts()> counts) { http_counts_ = std::move(counts); }

 private:
  using Route = void (Api::*)(const HttpRequest&, std::unique_ptr<Exchange>&);
  struct Entry {
    const char* method;
    const char* path;
    Route route;
    bool open;  // without a key
  };
  static const std::vector<Entry>& entries();

  void dispatch(const HttpRequest& request, std::unique_ptr<Exchange>& exchange);
  void check_key(const HttpRequest& request) const;

  void page(const HttpRequest& request, std::unique_ptr<Exchange>& exchange);
  void health(const HttpRequest& request, std::unique_ptr<Exchange>& exchange);
  void metrics(const HttpRequest& request, std::unique_ptr<Exchange>& exchange);
  void models(const HttpRequest& request, std::unique_ptr<Exchange>& exchange);
  void tokenize(const HttpRequest& request, std::unique_ptr<Exchange>& exchange);
  void detokenize(const HttpRequest& request, std::unique_ptr<Exchange>& exchange);
  void chat_completions(const HttpRequest& request, std::unique_ptr<Exchange>& exchange);
  void completions(const HttpRequest& request, std::unique_ptr<Exchange>& exchange);
  void messages(const HttpRequest& request, std::unique_ptr<Exchange>& exchange);
  void count_tokens(const HttpRequest& request, std::unique_ptr<Exchange>& exchange);
  void responses(const HttpRequest& request, std::unique_ptr<Exchange>& exchange);

  // A chat answer in any protocol.
  void answer_chat(const HttpRequest& http, ChatRequest request, std::unique_ptr<Framing> framing,
                   const std::string& id, std::unique_ptr<Exchange>& exchange);
  ChatPrompt prompt_of(const chat::Conversation& conversation);
  Request engine_request(const HttpRequest& http, const Settings& settings,
                         std::vector<std::int32_t> ids) const;
  void submit(Request request, std::shared_ptr<Answer> answer, bool stream);
  JsonValue model_json() const;
  AnswerName name(std::string id) const;

  Engine& engine_;
  const Tokenizer& tokenizer_;
  const ApiOptions options_;
  AccessLog& log_;
  GrammarCache grammars_;
  const bool chat_;  // has the vocabulary chat tokens?
  const std::int64_t created_;
  std::atomic<bool> stopping_ = false;
  std::function<HttpCounts()> http_counts_;
};

}  // namespace triax::server
