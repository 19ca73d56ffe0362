// The checks of `triax selftest --server`: does a server keep the contract of K3's hosted API, as
// the vendor's verifier tests it? It is asked over HTTP alone; any OpenAI-compatible server will
// do.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "triax/cli/http_client.h"
#include "triax/cli/selftest_checks.h"

namespace triax::cli {

// An answer, whole or joined from a stream.
struct ChatReading {
  int status = 0;
  std::string content, reasoning, finish, error;
  bool has_reasoning = false, content_null = false;
  nlohmann::json calls = nlohmann::json::array();  // {id, type, name, arguments}
  nlohmann::json usage, choice_usage;
  nlohmann::json logprobs = nlohmann::json::array();  // of the content's tokens
  std::vector<nlohmann::json> chunks;                 // of a stream

  bool ok() const { return status == 200; }
};

enum class ServerProfile : std::uint8_t { open, kimi };

class ServerChecks {
 public:
  using Tell = std::function<void(const CheckResult&)>;

  ServerChecks(const HttpClient& client, Tell tell) : client_(client), tell_(std::move(tell)) {}
  // `profile`: "open", "kimi", or "auto" for what the server says or does. Throws Error when the
  // server cannot be reached.
  void run(const std::string& profile);
  ServerProfile profile() const { return profile_; }
  const std::string& model() const { return model_; }

 private:
  using json = nlohmann::json;

  // Runs one check: what it returns is told beside its name, what it throws is why it failed.
  void check(const std::string& name, const std::function<std::string()>& body);
  void both(const std::string& name, const std::function<std::string(bool stream)>& body);
  // A request with this member is taken, or refused with a 400 that is told as JSON.
  void takes(const std::string& name, const json& members);
  void refuses(const std::string& name, const json& members);
  void refuses_body(const std::string& name, const std::string& body, int status = 400);

  json request(const json& members = json::object()) const;
  ChatReading ask(json body, bool stream = false);
  ChatReading ask_ok(json body, bool stream = false);
  void read_whole(const HttpAnswer& answer, ChatReading& out) const;
  void read_stream(const HttpAnswer& answer, ChatReading& out) const;
  void note_text(const ChatReading& reading);

  // server_checks.cc
  void find_model();
  void find_profile(const std::string& profile);
  void answers();
  void streams();
  void caching();
  // server_checks_fields.cc
  void sampling();
  void limits_and_stops();
  void thinking();
  void partial();
  void errors();
  void other_routes();
  // server_checks_tools.cc
  void tool_calls();
  void tool_declarations();
  void dynamic_tools();
  void formats();
  ChatReading forced_call(json body, bool stream);

  const HttpClient& client_;
  Tell tell_;
  std::string model_;
  ServerProfile profile_ = ServerProfile::open;
  std::string leaked_;  // a text with a marker in it
};

// Does a value fit a schema? The keywords of the checks alone; the first fault, or an empty text.
std::string schema_fault(const nlohmann::json& schema, const nlohmann::json& value,
                         const std::string& where = "$");

}  // namespace triax::cli
