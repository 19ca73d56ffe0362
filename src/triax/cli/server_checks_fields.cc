// Checks of single fields: what is taken, what is refused, what it does.
#include <algorithm>

#include "triax/cli/server_checks.h"
#include "triax/core/error.h"

namespace triax::cli {
namespace {

using nlohmann::json;

json only(const char* key, const json& value) {
  return json{{key, value}};
}

// Text in which a stop string can stand: ASCII, in the middle.
std::string stop_in(const std::string& text) {
  for (std::size_t at = text.size() / 3; at + 1 < text.size(); ++at) {
    if (text[at] > ' ' && text[at] < 127 && text[at + 1] > ' ' && text[at + 1] < 127) {
      return text.substr(at, 2);
    }
  }
  for (const char c : text) {
    if (c > ' ' && c < 127) return std::string(1, c);
  }
  return {};
}

const json kOff = {{"type", "disabled"}};

}  // namespace

// What the verifier sends of sampling fields, and the profile's own limits.
void ServerChecks::sampling() {
  struct Value {
    const char* key;
    json value;
    bool open, kimi;  // taken?
  };
  const std::vector<Value> values = {{"temperature", 0, true, true},
                                     {"temperature", 0.6, true, true},
                                     {"temperature", 1, true, true},
                                     {"temperature", 1.1, true, false},
                                     {"temperature", 2, true, false},
                                     {"temperature", -0.1, false, false},
                                     {"temperature", "1", false, false},
                                     {"top_p", 0.95, true, true},
                                     {"top_p", 0.8, true, false},
                                     {"top_p", 1.1, false, false},
                                     {"presence_penalty", 0, true, true},
                                     {"presence_penalty", 0.5, true, false},
                                     {"presence_penalty", 3, false, false},
                                     {"frequency_penalty", 0, true, true},
                                     {"frequency_penalty", 0.5, true, false},
                                     {"n", 1, true, true},
                                     {"n", 2, true, false},
                                     {"n", 0, false, false}};
  for (const Value& v : values) {
    const std::string name = fmt::format("{} {}", v.key, v.value.dump());
    if (profile_ == ServerProfile::kimi ? v.kimi : v.open) {
      takes(name, {{v.key, v.value}, {"max_tokens", 2}});
    } else {
      refuses(name, only(v.key, v.value));
    }
  }
}

void ServerChecks::limits_and_stops() {
  both("max_tokens ends the answer", [&](bool stream) {
    const ChatReading r = ask_ok(request({{"max_tokens", 3}}), stream);
    const std::int64_t n = r.usage.at("completion_tokens");
    if (n > 3 || (n == 3 && r.finish != "length" && r.finish != "stop")) {
      fail("{} tokens, finish_reason {}", n, r.finish);
    }
    return fmt::format("{} tokens, {}", n, r.finish);
  });
  check("max_completion_tokens goes before max_tokens", [&] {
    const ChatReading r = ask_ok(request({{"max_tokens", 20}, {"max_completion_tokens", 2}}));
    const std::int64_t n = r.usage.at("completion_tokens");
    if (n > 2) fail("{} tokens", n);
    return std::string();
  });
  both("a stop string ends the text before it", [&](bool stream) {
    json body = request({{"temperature", 0}, {"max_tokens", 48}, {"thinking", kOff}});
    std::string text, stop;
    for (const char* prompt : {"Count to twenty.", "Tell me of the sea.", "List five names."}) {
      body["messages"][0]["content"] = prompt;
      text = ask_ok(body).content;
      stop = stop_in(text);
      if (!stop.empty()) break;
    }
    if (stop.empty()) fail("no answer has ASCII text to stop at");
    body["stop"] = json::array({stop});
    const ChatReading r = ask_ok(body, stream);
    const std::string wanted = text.substr(0, text.find(stop));
    if (r.content != wanted) {
      fail("{} instead of {}", in_quotes(r.content), in_quotes(wanted));
    }
    if (r.finish != "stop") fail("finish_reason is {}", in_quotes(r.finish));
    return in_quotes(stop);
  });
  const std::string long_stop(33, 'x');
  json five = json::array(), six = json::array();
  for (int i = 0; i < 6; ++i) {
    if (i < 5) five.push_back(fmt::format("stop{}", i));
    six.push_back(fmt::format("stop{}", i));
  }
  takes("five stop strings", only("stop", five));
  refuses("an empty stop string", only("stop", json::array({""})));
  if (profile_ == ServerProfile::kimi) {
    refuses("six stop strings", only("stop", six));
    refuses("a stop string of 33 bytes", only("stop", long_stop));
  }
  both("logprobs: a number a token, likeliest first", [&](bool stream) {
    const ChatReading r = ask_ok(
        request({{"temperature", 0}, {"thinking", kOff}, {"logprobs", true}, {"top_logprobs", 3}}),
        stream);
    if (r.logprobs.empty()) fail("logprobs.content is empty");
    for (const json& t : r.logprobs) {
      const double own = t.at("logprob");
      const json& top = t.at("top_logprobs");
      if (!t.contains("token") || own > 1e-6 || top.size() != 3) fail("a token is {}", t.dump());
      for (std::size_t i = 1; i < top.size(); ++i) {
        if (top[i].at("logprob") > top[i - 1].at("logprob")) fail("not in order: {}", top.dump());
      }
      if (own < top[0].at("logprob").get<double>() - 1e-4) {
        fail("at temperature 0 a token is not the likeliest: {}", t.dump());
      }
    }
    return fmt::format("{} tokens", r.logprobs.size());
  });
  refuses("top_logprobs without logprobs", only("top_logprobs", 2));
  refuses("top_logprobs 21", {{"logprobs", true}, {"top_logprobs", 21}});
}

void ServerChecks::thinking() {
  both("thinking is on by default: reasoning_content", [&](bool stream) {
    const ChatReading r = ask_ok(request({{"max_tokens", 16}}), stream);
    if (!r.has_reasoning) fail("there is no reasoning_content");
    return fmt::format("{} bytes", r.reasoning.size());
  });
  both("thinking disabled: no reasoning_content", [&](bool stream) {
    const ChatReading r = ask_ok(request({{"thinking", kOff}}), stream);
    if (!r.reasoning.empty()) fail("it says {}", in_quotes(r.reasoning));
    return std::string();
  });
  const auto tokens = [&](const json& members) {
    return ask_ok(request(members)).usage.at("prompt_tokens").get<std::int64_t>();
  };
  for (const char* effort : {"low", "high", "max"}) {
    check(fmt::format("effort {} is taken, in thinking and alone", effort), [&] {
      const auto a = tokens({{"thinking", {{"type", "enabled"}, {"effort", effort}}}});
      const auto b = tokens({{"reasoning_effort", effort}});
      const auto c =
          tokens({{"chat_template_kwargs", {{"thinking", true}, {"thinking_effort", effort}}}});
      if (a != b || a != c) fail("prompts of {}, {} and {} tokens", a, b, c);
      return fmt::format("{} prompt tokens", a);
    });
  }
  check("thinking.effort goes before reasoning_effort", [&] {
    const auto low = tokens({{"thinking", {{"type", "enabled"}, {"effort", "low"}}}});
    const auto two = tokens(
        {{"thinking", {{"type", "enabled"}, {"effort", "low"}}}, {"reasoning_effort", "high"}});
    if (low != two) fail("prompts of {} and {} tokens", low, two);
    return std::string();
  });
  check("reasoning_effort none and thinking false mean disabled", [&] {
    const auto off = tokens({{"thinking", kOff}});
    const auto none = tokens({{"reasoning_effort", "none"}});
    const auto kwargs = tokens({{"chat_template_kwargs", {{"thinking", false}}}});
    if (off != none || off != kwargs) fail("prompts of {}, {} and {} tokens", off, none, kwargs);
    return std::string();
  });
  refuses("an unknown effort", only("reasoning_effort", "sometimes"));
  refuses("an unknown thinking type", only("thinking", json{{"type", "perhaps"}}));
}

void ServerChecks::partial() {
  both("partial: the answer goes on from what is given", [&](bool stream) {
    json body = request({{"thinking", kOff}});
    const std::int64_t before = ask_ok(body).usage.at("prompt_tokens");
    body["messages"].push_back(
        {{"role", "assistant"}, {"content", "Once upon a time"}, {"partial", true}});
    const ChatReading r = ask_ok(body, stream);
    const std::int64_t after = r.usage.at("prompt_tokens");
    if (after <= before) fail("prompts of {} and {} tokens", before, after);
    return fmt::format("{} prompt tokens more", after - before);
  });
}

void ServerChecks::errors() {
  refuses_body("an empty body", "");
  refuses_body("a body that is no JSON", "{\"messages\": [");
  refuses_body("a body that is a list", "[]");
  refuses_body("ten thousand open brackets", std::string(10000, '['));
  refuses_body("a request without messages", json{{"model", model_}}.dump());
  refuses("no message", only("messages", json::array()));
  refuses("an unknown role",
          only("messages", json::array({{{"role", "robot"}, {"content", "x"}}})));
  refuses("a tool result without tool_call_id",
          only("messages", json::array({{{"role", "user"}, {"content", "x"}},
                                        {{"role", "tool"}, {"content", "y"}}})));
  refuses("max_tokens 0", only("max_tokens", 0));
  refuses("max_tokens as text", only("max_tokens", "8"));
  check("an error before the first token of a stream is a plain answer", [&] {
    const ChatReading r = ask(request({{"temperature", -1}}), true);
    if (r.status != 400 || r.error.empty()) fail("status {}, {}", r.status, in_quotes(r.error));
    return std::string();
  });
  check("an unknown path is 404", [&] {
    const int status = client_.ask("GET", "/v1/nothing-here", "").status;
    if (status != 404) fail("status {}", status);
    return std::string();
  });
  if (!client_.key().empty()) {
    check("a wrong key is 401", [&] {
      const int status = client_.ask("GET", "/v1/models", "", client_.key() + "x").status;
      if (status != 401) fail("status {}", status);
      return std::string();
    });
  }
}

// Only where the server has them.
void ServerChecks::other_routes() {
  const auto offered = [&](const HttpAnswer& a) { return a.status != 404 && a.status != 405; };
  const json user = json::array({{{"role", "user"}, {"content", "Say hello."}}});
  const json message = {{"model", model_}, {"max_tokens", 8}, {"messages", user}};
  if (const HttpAnswer a = client_.ask("POST", "/v1/messages", message.dump()); offered(a)) {
    check("/v1/messages answers as Anthropic's", [&] {
      if (a.status != 200) fail("status {}", a.status);
      const json body = json::parse(a.body);
      if (body.at("type") != "message" || !body.at("content").is_array() ||
          !body.at("usage").contains("input_tokens")) {
        fail("the answer is {}", in_quotes(a.body));
      }
      return body.at("stop_reason").dump();
    });
  }
  const json text = {{"model", model_}, {"max_tokens", 8}, {"prompt", "Once upon a"}};
  if (const HttpAnswer a = client_.ask("POST", "/v1/completions", text.dump()); offered(a)) {
    check("/v1/completions goes on", [&] {
      if (a.status != 200) fail("status {}", a.status);
      const json body = json::parse(a.body);
      if (!body.at("choices").at(0).at("text").is_string()) fail("there is no text");
      return body.at("choices").at(0).at("finish_reason").dump();
    });
  }
}

}  // namespace triax::cli
