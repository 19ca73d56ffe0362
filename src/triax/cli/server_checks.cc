// Reading answers, and the checks of whole and streamed ones.
#include "triax/cli/server_checks.h"

#include <algorithm>
#include <set>

#include "triax/core/error.h"

namespace triax::cli {
namespace {

using nlohmann::json;

void append(std::string& to, const json& delta, const char* key) {
  if (const auto at = delta.find(key); at != delta.end() && at->is_string()) {
    to += at->get<std::string>();
  }
}

void append_calls(json& calls, const json& deltas) {
  for (const json& call : deltas) {
    const std::size_t index = call.at("index").get<std::size_t>();
    if (index > calls.size()) fail("tool call {} comes before call {}", index, calls.size());
    if (index == calls.size()) {
      if (!call.contains("id") || !call.at("function").contains("name")) {
        fail("the first delta of call {} has no id or no name", index);
      }
      calls.push_back({{"id", call["id"]},
                       {"type", call.value("type", "")},
                       {"name", call["function"]["name"]},
                       {"arguments", ""}});
    } else if (call.contains("id")) {
      fail("a later delta of call {} has an id again", index);
    }
    std::string arguments = calls[index]["arguments"];
    if (call.contains("function")) append(arguments, call["function"], "arguments");
    calls[index]["arguments"] = arguments;
  }
}

json parsed(const std::string& text, const char* what) {
  json out = json::parse(text, nullptr, false);
  if (out.is_discarded()) fail("{} is no JSON: {}", what, in_quotes(text.substr(0, 100)));
  return out;
}

void expect(bool good, const std::string& what) {
  if (!good) throw Error(what);
}

// Data of events; comments and names are left out.
std::vector<std::string> events_of(const std::string& body) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < body.size();) {
    const std::size_t end = std::min(body.find('\n', at), body.size());
    std::string line = body.substr(at, end - at);
    if (line.ends_with('\r')) line.pop_back();
    if (line.starts_with("data:")) {
      out.push_back(line.substr(line.starts_with("data: ") ? 6 : 5));
    }
    at = end + 1;
  }
  return out;
}

}  // namespace

void ServerChecks::check(const std::string& name, const std::function<std::string()>& body) {
  CheckResult r{name, true, ""};
  try {
    r.detail = body();
  } catch (const std::exception& e) {
    r.passed = false;
    r.detail = e.what();
  }
  tell_(r);
}

void ServerChecks::both(const std::string& name,
                        const std::function<std::string(bool stream)>& body) {
  for (const bool stream : {false, true}) {
    check(name + (stream ? ", streamed" : ""), [&] { return body(stream); });
  }
}

json ServerChecks::request(const json& members) const {
  json out = {{"model", model_},
              {"messages", json::array({{{"role", "user"}, {"content", "Say hello."}}})},
              {"max_tokens", 8}};
  out.update(members);
  return out;
}

ChatReading ServerChecks::ask(json body, bool stream) {
  if (stream) body["stream"] = true;
  const HttpAnswer answer = client_.ask("POST", "/v1/chat/completions", body.dump());
  ChatReading out;
  out.status = answer.status;
  if (answer.status != 200) {
    const json e = json::parse(answer.body, nullptr, false);
    if (e.is_object() && e.contains("error") && e["error"].is_object()) {
      out.error = e["error"].value("message", "");
    }
    if (answer.field("content-type").find("event-stream") != std::string_view::npos) {
      out.error.clear();  // an error before the first token is a plain answer
    }
    return out;
  }
  stream ? read_stream(answer, out) : read_whole(answer, out);
  note_text(out);
  return out;
}

ChatReading ServerChecks::ask_ok(json body, bool stream) {
  ChatReading out = ask(std::move(body), stream);
  if (!out.ok()) fail("status {}: {}", out.status, out.error);
  return out;
}

void ServerChecks::read_whole(const HttpAnswer& answer, ChatReading& out) const {
  const json body = parsed(answer.body, "the answer");
  expect(body.value("object", "") == "chat.completion", "object is not chat.completion");
  const json& choice = body.at("choices").at(0);
  const json& message = choice.at("message");
  expect(message.value("role", "") == "assistant", "the message's role is not assistant");
  out.content_null = !message.contains("content") || message["content"].is_null();
  append(out.content, message, "content");
  append(out.reasoning, message, "reasoning_content");
  out.has_reasoning =
      message.contains("reasoning_content") && message["reasoning_content"].is_string();
  if (message.contains("tool_calls") && message["tool_calls"].is_array()) {
    for (const json& call : message["tool_calls"]) {
      out.calls.push_back({{"id", call.at("id")},
                           {"type", call.value("type", "")},
                           {"name", call.at("function").at("name")},
                           {"arguments", call.at("function").at("arguments")}});
    }
  }
  out.finish = choice.at("finish_reason").get<std::string>();
  out.usage = body.value("usage", json());
  if (choice.contains("logprobs") && choice["logprobs"].is_object()) {
    out.logprobs = choice["logprobs"].value("content", json::array());
  }
}

void ServerChecks::read_stream(const HttpAnswer& answer, ChatReading& out) const {
  expect(answer.field("content-type").starts_with("text/event-stream"),
         fmt::format("content type is {}", in_quotes(answer.field("content-type"))));
  const auto events = events_of(answer.body);
  expect(!events.empty() && events.back() == "[DONE]", "the stream does not end in [DONE]");
  for (std::size_t i = 0; i + 1 < events.size(); ++i) {
    const json chunk = parsed(events[i], "an event");
    if (chunk.contains("error")) fail("an error in the stream: {}", chunk["error"].dump());
    out.chunks.push_back(chunk);
    if (chunk.contains("usage") && chunk["usage"].is_object()) out.usage = chunk["usage"];
    for (const json& choice : chunk.at("choices")) {
      if (choice.value("index", 0) != 0) continue;
      const json delta = choice.value("delta", json::object());
      append(out.content, delta, "content");
      append(out.reasoning, delta, "reasoning_content");
      out.has_reasoning |= delta.contains("reasoning_content");
      if (delta.contains("tool_calls")) append_calls(out.calls, delta["tool_calls"]);
      if (choice.contains("logprobs") && choice["logprobs"].is_object()) {
        for (const json& t : choice["logprobs"].value("content", json::array())) {
          out.logprobs.push_back(t);
        }
      }
      if (choice.contains("usage") && choice["usage"].is_object()) {
        out.choice_usage = choice["usage"];
      }
      if (!choice.contains("finish_reason") || choice["finish_reason"].is_null()) continue;
      expect(out.finish.empty(), "two chunks have a finish_reason");
      out.finish = choice["finish_reason"];
    }
  }
  expect(!out.finish.empty(), "no chunk has a finish_reason");
}

// Markers of the chat format belong in no field.
void ServerChecks::note_text(const ChatReading& reading) {
  for (const std::string& text : {reading.content, reading.reasoning, reading.calls.dump()}) {
    for (const char* marker : {"<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>"}) {
      if (text.find(marker) != std::string::npos) leaked_ = text;
    }
  }
}

void ServerChecks::takes(const std::string& name, const json& members) {
  check(name + " is taken", [&] {
    ask_ok(request(members));
    return std::string();
  });
}

void ServerChecks::refuses(const std::string& name, const json& members) {
  refuses_body(name, request(members).dump());
}

void ServerChecks::refuses_body(const std::string& name, const std::string& body, int status) {
  check(name + " is refused", [&] {
    const HttpAnswer answer = client_.ask("POST", "/v1/chat/completions", body);
    if (answer.status != status) fail("status {}: expected {}", answer.status, status);
    const json e = parsed(answer.body, "the error");
    expect(e.is_object() && e.contains("error") && e["error"].is_object(),
           "the error is not {\"error\": {...}}");
    expect(!e["error"].value("message", "").empty(), "the error has no message");
    expect(e["error"].contains("type"), "the error has no type");
    return e["error"]["message"].get<std::string>();
  });
}

void ServerChecks::run(const std::string& profile) {
  find_model();
  find_profile(profile);
  answers();
  streams();
  caching();
  thinking();
  sampling();
  limits_and_stops();
  partial();
  formats();
  tool_calls();
  tool_declarations();
  dynamic_tools();
  errors();
  other_routes();
  check("no marker of the chat format in any field", [&] {
    if (!leaked_.empty()) fail("found in {}", in_quotes(leaked_));
    return std::string();
  });
}

void ServerChecks::find_model() {
  const HttpAnswer answer = client_.ask("GET", "/v1/models", "");
  check("/v1/models names a model and its context_length", [&] {
    if (answer.status != 200) fail("status {}: {}", answer.status, in_quotes(answer.body));
    const json body = parsed(answer.body, "the list");
    const json& first = body.at("data").at(0);
    model_ = first.at("id").get<std::string>();
    const auto context = first.value("context_length", std::int64_t{0});
    if (context <= 0) fail("{} has no context_length", in_quotes(model_));
    return fmt::format("{}, {} tokens", model_, context);
  });
}

void ServerChecks::find_profile(const std::string& profile) {
  if (profile != "auto") {
    profile_ = profile == "kimi" ? ServerProfile::kimi : ServerProfile::open;
    return;
  }
  const HttpAnswer health = client_.ask("GET", "/health", "");
  const json body = json::parse(health.body, nullptr, false);
  if (body.is_object() && body.contains("profile")) {
    profile_ = body["profile"] == "kimi" ? ServerProfile::kimi : ServerProfile::open;
    return;
  }
  const ChatReading r = ask(request({{"temperature", 1.1}, {"max_tokens", 1}}));
  profile_ = r.ok() ? ServerProfile::open : ServerProfile::kimi;
}

void ServerChecks::answers() {
  check("an answer has role, content, finish_reason", [&] {
    const ChatReading r = ask_ok(request());
    static const std::set<std::string> kReasons{"stop", "length", "tool_calls"};
    if (!kReasons.contains(r.finish)) fail("finish_reason is {}", in_quotes(r.finish));
    return r.finish;
  });
  check("usage adds up, cached_tokens stand in both places", [&] {
    const json u = ask_ok(request()).usage;
    const std::int64_t prompt = u.at("prompt_tokens"), completion = u.at("completion_tokens");
    if (prompt <= 0 || completion <= 0 || u.at("total_tokens") != prompt + completion) {
      fail("usage is {}", u.dump());
    }
    const std::int64_t cached = u.at("cached_tokens");
    if (cached < 0 || cached > prompt ||
        u.at("prompt_tokens_details").at("cached_tokens") != cached) {
      fail("usage is {}", u.dump());
    }
    return fmt::format("{} + {}", prompt, completion);
  });
  both("temperature 0 says the same twice", [&](bool stream) {
    const json body = request({{"temperature", 0}, {"max_tokens", 16}});
    const ChatReading a = ask_ok(body, stream), b = ask_ok(body, stream);
    if (a.content != b.content || a.reasoning != b.reasoning) fail("two answers differ");
    return std::string();
  });
}

void ServerChecks::streams() {
  const json body = request({{"temperature", 0}, {"max_tokens", 24}});
  check("chunks: one id, chat.completion.chunk, the role first", [&] {
    const ChatReading r = ask_ok(body, true);
    expect(!r.chunks.empty(), "the stream has no chunks");
    const json id = r.chunks[0].at("id");
    for (const json& chunk : r.chunks) {
      expect(chunk.at("id") == id, "the id changes within the stream");
      expect(chunk.value("object", "") == "chat.completion.chunk",
             "object is not chat.completion.chunk");
    }
    expect(r.chunks[0].at("choices").at(0).at("delta").value("role", "") == "assistant",
           "the first delta has no role");
    return fmt::format("{} chunks", r.chunks.size());
  });
  check("the deltas add up to the whole answer", [&] {
    const ChatReading a = ask_ok(body), b = ask_ok(body, true);
    if (a.content != b.content || a.reasoning != b.reasoning || a.finish != b.finish) {
      fail("they differ: {} and {}", in_quotes(a.reasoning + a.content),
           in_quotes(b.reasoning + b.content));
    }
    return std::string();
  });
  check("the finish chunk has usage, at the top and in the choice", [&] {
    const ChatReading r = ask_ok(body, true);
    expect(r.choice_usage.is_object(), "choices[0].usage is missing");
    expect(r.usage.is_object(), "usage is missing");
    const json whole = ask_ok(body).usage;
    for (const char* key : {"prompt_tokens", "completion_tokens"}) {
      if (r.usage.at(key) != whole.at(key) || r.choice_usage.at(key) != whole.at(key)) {
        fail("{}: {} and {}, without streaming {}", key, r.usage.at(key).dump(),
             r.choice_usage.at(key).dump(), whole.at(key).dump());
      }
    }
    return std::string();
  });
  check("include_usage adds a chunk without choices", [&] {
    json asked = body;
    asked["stream_options"] = {{"include_usage", true}};
    const ChatReading r = ask_ok(asked, true);
    expect(!r.chunks.empty() && r.chunks.back().at("choices").empty(),
           "the last chunk has choices");
    expect(r.chunks.back().at("usage").is_object(), "the last chunk has no usage");
    return std::string();
  });
}

void ServerChecks::caching() {
  check("a second turn's cached_tokens hold the first prompt", [&] {
    std::string text = "Remember these words:";
    for (int i = 0; i < 120; ++i) text += fmt::format(" word{}", i * 7919 % 1000);
    json body = request({{"temperature", 0}});
    body["messages"][0]["content"] = text;
    const ChatReading first = ask_ok(body);
    body["messages"].push_back({{"role", "assistant"},
                                {"content", first.content},
                                {"reasoning_content", first.reasoning}});
    body["messages"].push_back({{"role", "user"}, {"content", "Go on."}});
    const ChatReading second = ask_ok(body);
    const std::int64_t before = first.usage.at("prompt_tokens"),
                       cached = second.usage.at("cached_tokens");
    if (cached < before / 2) fail("{} cached of a first prompt of {}", cached, before);
    return fmt::format("{} of {}", cached, second.usage.at("prompt_tokens").get<std::int64_t>());
  });
}

}  // namespace triax::cli
