#include "triax/server/api.h"

#include <algorithm>
#include <chrono>

#include "triax/server/page.h"

namespace triax::server {
namespace {

using chat::JsonValue;

bool equal_secret(std::string_view a, std::string_view b) {
  unsigned char different = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    different |= static_cast<unsigned char>(a[i] ^ (b.empty() ? '\0' : b[i % b.size()]));
  }
  return different == 0;
}

// Of `Authorization: Bearer KEY` or `x-api-key: KEY`.
std::string_view key_of(const HttpRequest& request) {
  std::string_view value = request.field("authorization");
  static constexpr std::string_view kBearer = "Bearer ";
  if (value.starts_with(kBearer)) return value.substr(kBearer.size());
  return request.field("x-api-key");
}

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += (out.empty() ? "" : "; ") + line;
  // A field's value is ASCII in one line.
  for (char& c : out) c = c >= ' ' && c <= '~' ? c : '?';
  return out.substr(0, 2000);
}

bool anthropic(std::string_view path) {
  return path.starts_with("/v1/messages");
}

std::vector<std::int32_t> ids_of(const JsonValue& list, const char* field, std::size_t vocab) {
  std::vector<std::int32_t> out;
  for (const JsonValue& item : list.items()) {
    const JsonValue holder = object({{"id", item}});
    if (!item.is_number()) bad_request(field, "should hold token ids, holds {}", item.kind_name());
    try {
      out.push_back(static_cast<std::int32_t>(
          *whole_field(holder, "id", 0, static_cast<std::int64_t>(vocab) - 1)));
    } catch (const ApiError&) {
      bad_request(field, "{} is no token id; there are 0 to {}", item.text().substr(0, 40),
                  vocab - 1);
    }
  }
  return out;
}

}  // namespace

Api::Api(Engine& engine, const Tokenizer& tokenizer, ApiOptions options, AccessLog& log)
    : engine_(engine),
      tokenizer_(tokenizer),
      options_(std::move(options)),
      log_(log),
      grammars_(tokenizer),
      chat_(chat::has_chat_tokens(tokenizer)),
      created_(std::chrono::duration_cast<std::chrono::seconds>(
                   std::chrono::system_clock::now().time_since_epoch())
                   .count()) {}

const std::vector<Api::Entry>& Api::entries() {
  static const std::vector<Entry> all = {
      {"GET", "/", &Api::page, true},
      {"GET", "/health", &Api::health, true},
      {"GET", "/metrics", &Api::metrics, false},
      {"GET", "/v1/models", &Api::models, false},
      {"GET", "/v1/models/", &Api::models, false},
      {"POST", "/tokenize", &Api::tokenize, false},
      {"POST", "/detokenize", &Api::detokenize, false},
      {"POST", "/v1/chat/completions", &Api::chat_completions, false},
      {"POST", "/v1/completions", &Api::completions, false},
      {"POST", "/v1/messages", &Api::messages, false},
      {"POST", "/v1/messages/count_tokens", &Api::count_tokens, false},
      {"POST", "/v1/responses", &Api::responses, false},
  };
  return all;
}

void Api::handle(HttpRequest request, std::shared_ptr<Reply> reply) {
  const std::string trace = fresh_id("req_");
  HttpFields fields{{"x-request-id", trace}, {"x-trace-id", trace}};
  if (!options_.cors.empty()) {
    const HttpFields cors{{"Access-Control-Allow-Origin", options_.cors},
                          {"Access-Control-Allow-Headers", "*, Authorization"},
                          {"Access-Control-Allow-Methods", "GET, POST, OPTIONS"},
                          {"Access-Control-Expose-Headers", "*"},
                          {"Vary", "Origin"}};
    fields.insert(fields.end(), cors.begin(), cors.end());
  }
  auto exchange =
      std::make_unique<Exchange>(request, std::move(reply), log_, std::move(fields),
                                 anthropic(request.path) ? anthropic_error_body : error_body);
  try {
    dispatch(request, exchange);
  } catch (const std::exception& fault) {
    if (exchange) {
      if (dynamic_cast<const Error*>(&fault) == nullptr) exchange->record.error = fault.what();
      exchange->fail(api_error_of(fault));
    }
  }
}

void Api::dispatch(const HttpRequest& request, std::unique_ptr<Exchange>& exchange) {
  if (request.method == "OPTIONS") {
    exchange->send(204, "", "");
    return;
  }
  const std::string method = request.method == "HEAD" ? "GET" : request.method;
  std::string allowed;
  for (const Entry& entry : entries()) {
    const std::string_view path = entry.path;
    const bool below = path.size() > 1 && path.ends_with('/');
    const bool fits = below ? request.path.starts_with(path) : request.path == path;
    if (!fits) continue;
    allowed = entry.method;
    if (method != entry.method) continue;
    exchange->record.route = entry.path;
    if (!entry.open) check_key(request);
    (this->*entry.route)(request, exchange);
    return;
  }
  if (allowed.empty()) {
    throw ApiError(404, "invalid_request_error", "not_found", "",
                   "there is nothing at " + in_quotes(request.path));
  }
  exchange->fields.emplace_back("Allow", allowed);
  throw ApiError(405, "invalid_request_error", "method_not_allowed", "",
                 fmt::format("{} takes {}, not {}", request.path, allowed, request.method));
}

void Api::check_key(const HttpRequest& request) const {
  if (options_.api_keys.empty()) return;
  const std::string_view key = key_of(request);
  for (const std::string& known : options_.api_keys) {
    if (equal_secret(key, known)) return;
  }
  throw ApiError(401, "authentication_error", "invalid_api_key", "",
                 key.empty() ? "a key is needed: Authorization: Bearer KEY, or x-api-key: KEY"
                             : "the key is not known here");
}

void Api::page(const HttpRequest& request, std::unique_ptr<Exchange>& exchange) {
  const Page& page = chat_page();
  const HttpFields fields = page_fields(page);
  exchange->fields.insert(exchange->fields.end(), fields.begin(), fields.end());
  if (same_version(request.field("if-none-match"), page.etag)) {
    exchange->send(304, "", "");
  } else {
    exchange->send(200, std::string(page.html), "text/html; charset=utf-8");
  }
}

void Api::health(const HttpRequest&, std::unique_ptr<Exchange>& exchange) {
  const EngineStats stats = engine_.stats();
  exchange->send(
      stopping_ ? 503 : 200,
      compact(object({{"status", str(stopping_ ? "stopping" : "ok")},
                      {"profile", str(options_.profile == Profile::kimi ? "kimi" : "open")},
                      {"running", num(stats.running)},
                      {"waiting", num(stats.queued)}})));
}

void Api::metrics(const HttpRequest&, std::unique_ptr<Exchange>& exchange) {
  exchange->send(200, log_.metrics(engine_.stats(), http_counts_ ? http_counts_() : HttpCounts{}),
                 "text/plain; version=0.0.4; charset=utf-8");
}

JsonValue Api::model_json() const {
  return object(
      {{"id", str(options_.model)},
       {"object", str("model")},
       {"created", JsonValue::number(created_)},
       {"owned_by", str("triax")},
       {"display_name", str(options_.model)},
       {"context_length", num(engine_.longest_sequence())},
       {"max_model_len", num(engine_.longest_sequence())},
       {"supports_reasoning", flag(chat_)},
       {"supports_image_in", flag(false)},
       {"supports_video_in", flag(false)},
       {"supports_tool_use", flag(chat_)},
       {"supports_thinking_type", str("both")},
       {"think_efforts", object({{"support", flag(chat_)},
                                 {"valid_efforts", list({str("low"), str("high"), str("max")})},
                                 {"default_effort", str("max")}})}});
}

void Api::models(const HttpRequest& request, std::unique_ptr<Exchange>& exchange) {
  static constexpr std::string_view kPrefix = "/v1/models/";
  if (request.path.starts_with(kPrefix)) {
    if (request.path.substr(kPrefix.size()) != options_.model) {
      throw ApiError(
          404, "invalid_request_error", "model_not_found", "model",
          fmt::format("there is no model {}; {} is served here",
                      in_quotes(request.path.substr(kPrefix.size())), in_quotes(options_.model)));
    }
    exchange->send(200, compact(model_json()));
    return;
  }
  exchange->send(200, compact(object({{"object", str("list")}, {"data", list({model_json()})}})));
}

void Api::tokenize(const HttpRequest& request, std::unique_ptr<Exchange>& exchange) {
  const JsonValue body = parse_body(request.body);
  std::vector<std::int32_t> ids;
  if (body.find("messages") != nullptr) {
    ids = prompt_of(chat_request(body, options_.profile).conversation).ids;
  } else {
    std::optional<std::string> text;
    for (const char* key : {"prompt", "content", "text"}) {
      if (!text) text = text_field(body, key);
    }
    if (!text) bad_request("prompt", "is missing; give a text, or messages");
    ids = tokenizer_.encode(*text);
  }
  JsonValue tokens = JsonValue::array();
  for (const std::int32_t id : ids) tokens.push(JsonValue::number(std::int64_t{id}));
  exchange->send(200, compact(object({{"count", num(ids.size())},
                                      {"max_model_len", num(engine_.longest_sequence())},
                                      {"tokens", tokens}})));
}

void Api::detokenize(const HttpRequest& request, std::unique_ptr<Exchange>& exchange) {
  const JsonValue body = parse_body(request.body);
  const JsonValue* tokens = body.find("tokens");
  if (tokens == nullptr || !tokens->is_array()) {
    bad_request("tokens", "should be an array of token ids, is {}",
                tokens == nullptr ? "missing" : tokens->kind_name());
  }
  const std::string text = tokenizer_.decode(
      ids_of(*tokens, "tokens", static_cast<std::size_t>(tokenizer_.vocab_size())));
  exchange->send(200, compact(object({{"prompt", str(text)}, {"content", str(text)}})));
}

AnswerName Api::name(std::string id) const {
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::system_clock::now().time_since_epoch());
  return {std::move(id), options_.model, now.count()};
}

void Api::chat_completions(const HttpRequest& http, std::unique_ptr<Exchange>& exchange) {
  const JsonValue body = parse_body(http.body);
  ChatRequest request = chat_request(body, options_.profile);
  const std::string id = fresh_id("chatcmpl-");
  const Settings& s = request.settings;
  auto framing =
      chat_framing({name(id), s.n, request.conversation.thinking, s.logprobs, s.include_usage});
  answer_chat(http, std::move(request), std::move(framing), id, exchange);
}

ChatPrompt Api::prompt_of(const chat::Conversation& conversation) {
  if (!chat_) {
    bad_request("messages", "the model's vocabulary has no chat tokens; use /v1/completions");
  }
  return make_prompt(conversation, tokenizer_,
                     options_.remember_turns ? &engine_.turns() : nullptr);
}

Request Api::engine_request(const HttpRequest& http, const Settings& s,
                            std::vector<std::int32_t> ids) const {
  const std::size_t longest = engine_.longest_sequence();
  if (ids.size() >= longest) {
    throw ApiError(
        400, "invalid_request_error", "context_length_exceeded", "messages",
        fmt::format("the prompt has {} tokens; at most {} fit here", ids.size(), longest - 1));
  }
  if (s.n > engine_.options().max_sequences) {
    bad_request("n", "is {}: expected at most {}", s.n, engine_.options().max_sequences);
  }
  Request out;
  out.max_tokens = s.max_tokens.value_or(longest - ids.size());
  out.prompt = std::move(ids);
  out.sampling = s.sampling;
  out.logit_bias = s.logit_bias;
  out.n = s.n;
  out.min_tokens = s.min_tokens;
  if (!s.ignore_eos) out.stop_ids = options_.stop_ids;
  out.logprobs = s.logprobs;
  out.top_logprobs = s.top_logprobs;
  out.priority = s.priority;
  if (s.timeout_seconds) {
    out.deadline = EngineClock::now() + std::chrono::duration_cast<EngineClock::duration>(
                                            std::chrono::duration<double>(*s.timeout_seconds));
  }
  const std::string_view key = key_of(http);
  out.client = options_.api_keys.empty() || key.empty() ? http.peer : std::string(key);
  return out;
}

void Api::answer_chat(const HttpRequest& http, ChatRequest request,
                      std::unique_ptr<Framing> framing, const std::string& id,
                      std::unique_ptr<Exchange>& exchange) {
  auto prompt = std::make_shared<ChatPrompt>(prompt_of(request.conversation));
  const Settings& s = request.settings;
  Request engine = engine_request(http, s, prompt->ids);
  engine.cuts = prompt->cuts;
  engine.history_end = prompt->history_end;
  engine.constraint =
      grammars_.constraint(request.conversation, *prompt, request.parallel_calls, request.warnings);
  if (!request.warnings.empty()) {
    exchange->fields.emplace_back("x-triax-warning", joined(request.warnings));
  }
  exchange->record.id = id;
  std::vector<std::unique_ptr<AnswerReader>> readers;
  for (std::size_t i = 0; i < s.n; ++i) {
    ChatAnswerReader::Options options{i,      prompt->opened, s.ignore_eos,
                                      s.stop, s.logprobs,     [] { return fresh_id("call_"); }};
    readers.push_back(std::make_unique<ChatAnswerReader>(tokenizer_, std::move(options)));
  }
  Answer::ChoiceCall remember;
  if (options_.remember_turns && !prompt->is_partial) {
    remember = [this, prompt](const ChoiceEnd&, const AnswerReader& reader) {
      const auto& body = static_cast<const ChatAnswerReader&>(reader).body();
      if (body.empty()) return;
      const chat::Message message = chat::message_of(reader.done().turn);
      engine_.turns().remember(turn_key(message, prompt->thinking), prompt->before(), body);
    };
  }
  auto answer =
      std::make_shared<Answer>(std::move(exchange), std::move(framing), std::move(readers), log_,
                               s.stream, prompt->prompt_tokens(), std::move(remember));
  submit(std::move(engine), std::move(answer), s.stream);
}

void Api::submit(Request request, std::shared_ptr<Answer> answer, bool stream) {
  try {
    if (stream) answer->exchange().stream(answer->framing().idle());
    const Submitted out = engine_.submit(
        std::move(request), [answer](const Event& event) { return answer->on(event); });
    if (out.accepted()) {
      answer->exchange().on_gone([this, id = out.id] { engine_.cancel(id); });
      return;
    }
    ApiError busy(503, "server_error", "busy", "",
                  stopping_ ? "the server is being stopped"
                            : "too many requests wait already; try again later");
    busy.retry_after = std::max(out.retry_after_seconds, 1.0);
    throw busy;
  } catch (const std::exception& fault) {
    answer->exchange().fail(api_error_of(fault), answer->framing());
  }
}

void Api::completions(const HttpRequest& http, std::unique_ptr<Exchange>& exchange) {
  const JsonValue body = parse_body(http.body);
  const std::vector<std::string> unknown = unknown_fields(body);
  const Settings s = parse_settings(body, options_.profile);
  const JsonValue* prompt = body.find("prompt");
  if (prompt == nullptr) bad_request("prompt", "is missing");
  // A list of one prompt is that prompt.
  while (prompt->is_array() && prompt->items().size() == 1 && !prompt->items()[0].is_number()) {
    prompt = &prompt->items()[0];
  }
  std::vector<std::int32_t> ids;
  if (prompt->is_string()) {
    ids = tokenizer_.encode(prompt->text());
  } else if (prompt->is_array() && !prompt->items().empty() && prompt->items()[0].is_number()) {
    ids = ids_of(*prompt, "prompt", static_cast<std::size_t>(tokenizer_.vocab_size()));
  } else {
    bad_request("prompt", "should be one text, or one list of token ids");
  }
  if (ids.empty()) bad_request("prompt", "is empty; there is nothing to go on from");
  if (text_field(body, "suffix").value_or("") != "") bad_request("suffix", "is not supported");
  const auto best = whole_field(body, "best_of", 1, 128);
  if (best && static_cast<std::size_t>(*best) != s.n) bad_request("best_of", "should be n");

  const std::string id = fresh_id("cmpl-");
  CompletionForm form{name(id), s.n, s.logprobs, s.include_usage, {}};
  if (flag_field(body, "echo").value_or(false)) form.echo.assign(s.n, tokenizer_.decode(ids));
  Request engine = engine_request(http, s, ids);
  if (!s.max_tokens) engine.max_tokens = 16;  // OpenAI's default here
  engine.stop_strings = s.stop;
  if (!unknown.empty()) {
    exchange->fields.emplace_back("x-triax-warning", "not looked at: " + joined(unknown));
  }
  exchange->record.id = id;
  std::vector<std::unique_ptr<AnswerReader>> readers;
  for (std::size_t i = 0; i < s.n; ++i) {
    readers.push_back(std::make_unique<TextAnswerReader>(tokenizer_, i, s.logprobs, s.stop));
  }
  auto answer = std::make_shared<Answer>(std::move(exchange), completion_framing(std::move(form)),
                                         std::move(readers), log_, s.stream, ids.size(), nullptr);
  submit(std::move(engine), std::move(answer), s.stream);
}

}  // namespace triax::server
