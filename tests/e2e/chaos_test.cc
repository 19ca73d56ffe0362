// When things go wrong: clients that leave, bodies that are none, a server that is killed, a disk
// that is full, memory that is short. The others' answers stay what they are alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "e2e/program.h"
#include "e2e/server.h"
#include "support/http_client.h"

namespace triax {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::http;
using test::HttpAnswer;
using test::HttpClient;
using test::Server;
using testing::ContainsRegex;
using testing::HasSubstr;

constexpr const char* kChat = "/v1/chat/completions";

json question(const std::string& text, int tokens) {
  return {{"messages", json::array({{{"role", "user"}, {"content", text}}})},
          {"temperature", 0},
          {"max_tokens", tokens},
          {"ignore_eos", true}};
}

json streamed(json body) {
  body["stream"] = true;
  return body;
}

// What a stream says, all in one text; "" when it is not whole.
std::string text_of(const HttpAnswer& answer) {
  const auto events = answer.events();
  if (answer.status != 200 || events.empty() || events.back() != "[DONE]") return "";
  std::string out;
  for (const std::string& event : events) {
    if (event == "[DONE]") continue;
    const json chunk = json::parse(event);
    for (const json& choice : chunk["choices"]) {
      for (const char* key : {"reasoning_content", "content"}) {
        out += choice["delta"].value(key, "");
      }
    }
  }
  return out;
}

std::string ask(std::uint16_t port, const json& body) {
  return text_of(http(port, "POST", kChat, streamed(body).dump()));
}

// Starts a stream and returns when its first event is here.
void begin(HttpClient& client, const json& body) {
  client.send(HttpClient::request("POST", kChat, streamed(body).dump()));
  while (client.received().find("data: ") == std::string::npos && client.receive()) {
  }
}

// A client without manners. Each does one thing, drawn by its number.
void misbehave(std::uint16_t port, std::mt19937& dice) {
  const auto below = [&](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(dice);
  };
  const std::string good =
      HttpClient::request("POST", kChat, streamed(question("I leave", 400)).dump());
  HttpClient client(port);
  switch (below(7)) {
    case 0:  // leaves within its request
      client.send(good.substr(0, below(good.size())));
      return;
    case 1:  // leaves within its answer
      client.send(good);
      for (std::size_t bytes = below(4000); client.received().size() < bytes && client.receive();) {
      }
      return;
    case 2: {  // bytes that are no HTTP
      std::string noise(1 + below(2000), 'x');
      for (char& c : noise) c = static_cast<char>(below(256));
      client.send(noise + "\r\n\r\n");
      client.receive();
      return;
    }
    case 3: {  // a body with a byte that is another
      std::string body = streamed(question("I am damaged", 4)).dump();
      body[below(body.size())] = static_cast<char>(below(256));
      client.ask("POST", kChat, body);
      return;
    }
    case 4:  // deep
      client.ask("POST", kChat, std::string(1 + below(200000), below(2) == 0 ? '{' : '['));
      return;
    case 5:  // a length that is not kept
      client.send("POST " + std::string(kChat) + " HTTP/1.1\r\nContent-Length: 5000\r\n\r\n{\"me");
      return;
    default:  // a chunk without a size, a length that is no number
      client.send("POST " + std::string(kChat) + " HTTP/1.1\r\n" +
                  (below(2) == 0 ? "Transfer-Encoding: chunked\r\n\r\nxyz\r\n"
                                 : "Content-Length: many\r\n\r\n"));
      client.receive();
  }
}

TEST(Chaos, OthersAnswersStayRight) {
  Server server({"--users", "6", "--queue", "1000"});
  constexpr int kGood = 4, kRounds = 6;
  std::vector<json> bodies;
  std::vector<std::string> alone;
  for (int i = 0; i < kGood; ++i) {
    bodies.push_back(question("question " + std::string(static_cast<std::size_t>(40 * i + 1), 'q'),
                              24 + 12 * i));
    if (i % 2 == 1) bodies.back().update({{"temperature", 1}, {"seed", i}});
    alone.push_back(ask(server.port(), bodies.back()));
    ASSERT_NE(alone.back(), "");
  }
  std::atomic<int> wrong = 0, left = kGood;
  std::vector<std::thread> clients;
  for (std::size_t i = 0; i < kGood; ++i) {
    clients.emplace_back([&, i] {
      for (int round = 0; round < kRounds; ++round) {
        if (ask(server.port(), bodies[i]) != alone[i]) ++wrong;
      }
      --left;
    });
  }
  for (unsigned i = 0; i < 3; ++i) {
    clients.emplace_back([&, i] {
      std::mt19937 dice(i);
      for (int n = 0; n < 400 && (left > 0 || n < 20); ++n) misbehave(server.port(), dice);
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(http(server.port(), "GET", "/health").status, 200);
  EXPECT_TRUE(server.settles("triax_sequences_running", 0));
  EXPECT_TRUE(server.settles("triax_requests_waiting", 0));
  EXPECT_TRUE(server.settles("triax_sequence_bytes", 0)) << "no place is lost";
  EXPECT_EQ(ask(server.port(), bodies[0]), alone[0]);
  EXPECT_EQ(server.stop(), 0);
}

// Case P19, a: the client goes away while its 7,000 tokens are read.
TEST(Chaos, AClientThatLeavesWithinItsPromptStopsThePrompt) {
  Server server({"--users", "1"});
  const std::string prompt(7000, 'p');
  {
    HttpClient client(server.port());
    client.send(HttpClient::request("POST", kChat, streamed(question(prompt, 4)).dump()));
    ASSERT_TRUE(server.reaches("triax_prefill_tokens_total", 64));
  }
  ASSERT_TRUE(server.settles("triax_sequences_running", 0));
  const double read = server.metric("triax_prefill_tokens_total");
  EXPECT_LT(read, 7000);
  EXPECT_NE(ask(server.port(), question("next", 4)), "") << "the one place is free";
  EXPECT_TRUE(server.settles("triax_sequences_running", 0));
}

// Case P19, c and e: one leaves the queue, one finds it full.
TEST(Chaos, AFullQueueSaysWhenToComeBack) {
  Server server({"--users", "1", "--queue", "1"});
  HttpClient running(server.port());
  begin(running, question("I run", 3000));
  {
    HttpClient waiting(server.port());
    waiting.send(HttpClient::request("POST", kChat, streamed(question("I wait", 4)).dump()));
    ASSERT_TRUE(server.settles("triax_requests_waiting", 1));
    const HttpAnswer full =
        http(server.port(), "POST", kChat, question("I am one too many", 4).dump());
    EXPECT_EQ(full.status, 503);
    EXPECT_THAT(full.head, HasSubstr("Retry-After: "));
    EXPECT_EQ(full.json()["error"]["code"], "busy");
    EXPECT_EQ(http(server.port(), "GET", "/health").status, 200);
  }
  EXPECT_TRUE(server.settles("triax_requests_waiting", 0)) << "it left the queue";
  EXPECT_EQ(server.metric("triax_sequences_running"), 1) << "the other goes on";
  running.leave();
  EXPECT_TRUE(server.settles("triax_sequences_running", 0));
}

// A budget for few sequences: the others wait, each says the same as alone, nothing ends.
TEST(Chaos, ShortMemoryMakesRequestsWait) {
  const json body = question("one of many, " + std::string(300, 'm'), 40);
  std::string alone;
  {
    Server roomy;
    alone = ask(roomy.port(), body);
  }
  ASSERT_NE(alone, "");
  Server server({"--memory", "1", "--users", "16", "--queue", "4"});
  HttpClient first(server.port());
  begin(first, question("I run", 400));  // it has left the queue: all four places are free
  std::atomic<int> right = 0, busy = 0, other = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < 12; ++i) {
    clients.emplace_back([&] {
      const HttpAnswer a = http(server.port(), "POST", kChat, streamed(body).dump());
      if (a.status == 503 && a.head.find("Retry-After: ") != std::string::npos) {
        ++busy;
      } else if (text_of(a) == alone) {
        ++right;
      } else {
        ++other;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(other, 0);
  EXPECT_GE(right, 4) << "one runs and four wait at least";
  EXPECT_NE(text_of(first.answer()), "") << "the one that ran was not disturbed";
  EXPECT_EQ(http(server.port(), "GET", "/health").status, 200);
  EXPECT_EQ(server.stop(), 0);
}

// One that asks and does not read: much is written for it, and then it is dropped.
TEST(Chaos, AClientThatDoesNotReadIsDropped) {
  Server server;
  json body = question("talk", 1200);
  body.update({{"n", 8}, {"logprobs", true}, {"top_logprobs", 20}});
  body["thinking"] = {{"type", "disabled"}};
  HttpClient client(server.port());
  begin(client, body);
  EXPECT_TRUE(server.reaches("triax_http_slow_total", 1));
  EXPECT_TRUE(server.settles("triax_sequences_running", 0));
}

class OnDisk : public testing::Test {
 protected:
  void SetUp() override { fs::remove_all(folder_); }

  std::vector<std::string> words() const { return {"--cache-dir", folder_.string()}; }
  std::vector<fs::path> states() const {
    std::vector<fs::path> out;
    for (const auto& file : fs::recursive_directory_iterator(folder_)) {
      if (file.path().extension() == ".state") out.push_back(file.path());
    }
    return out;
  }
  // The first turn, and the request of the second.
  static json first_turn(std::uint16_t port) {
    json body = question("tell me of the sea " + std::string(300, 's'), 30);
    const HttpAnswer a = http(port, "POST", kChat, body.dump());
    EXPECT_EQ(a.status, 200) << a.body;
    body["messages"].push_back(a.json()["choices"][0]["message"]);
    body["messages"].push_back({{"role", "user"}, {"content", "go on"}});
    return body;
  }
  // Answer and cached tokens.
  static std::pair<std::string, int> turn(std::uint16_t port, const json& body) {
    const json a = http(port, "POST", kChat, body.dump()).json();
    return {a["choices"][0]["message"].dump(), a["usage"]["cached_tokens"].get<int>()};
  }

  fs::path folder_ = test::scratch() / "states";
};

// With the model of the repository: what a random one writes is no text whose ids come back.
TEST_F(OnDisk, AConversationGoesOnAfterAKill) {
  const std::string model = std::string(TRIAX_SOURCE_DIR) + "/models/nano";
  std::vector<std::string> kept = words();
  kept.insert(kept.end(), {"-m", model, "--chunk", "512"});
  const auto first_turn = [](std::uint16_t port) {
    json body = {{"temperature", 0}, {"max_tokens", 300}};
    body["messages"] =
        json::array({{{"role", "user"},
                      {"content",
                       "Mia was in the kitchen. She found a lamp. Mia went to the garden with the "
                       "lamp. Tom was in the attic.\nWhere is the lamp?"}}});
    const json a = http(port, "POST", kChat, body.dump()).json();
    body["messages"].push_back(a["choices"][0]["message"]);
    body["messages"].push_back({{"role", "user"}, {"content", "Where is Tom?"}});
    return body;
  };
  json second;
  std::pair<std::string, int> uninterrupted;
  {
    Server server({"-m", model, "--chunk", "512"});
    second = first_turn(server.port());
    uninterrupted = turn(server.port(), second);
  }
  ASSERT_GT(uninterrupted.second, 200) << "the end of the first turn";
  {
    Server server(kept);
    EXPECT_EQ(first_turn(server.port()), second);
    ASSERT_TRUE(server.reaches("triax_cache_disk_writes_total", 1));
    HttpClient busy(server.port());
    begin(busy, question("I run while it ends", 2000));
    server.signal(SIGKILL);
    EXPECT_EQ(server.wait(), 128 + SIGKILL);
  }
  ASSERT_FALSE(states().empty());
  const fs::path state = states()[0], beside = state.parent_path();
  fs::copy_file(state, beside / "damaged.state");
  fs::resize_file(beside / "damaged.state", fs::file_size(state) / 3);
  std::fstream(beside / "damaged.state", std::ios::in | std::ios::out).seekp(20).put('x');
  std::ofstream(beside / "rubbish.state") << "this is no state";
  std::ofstream(beside / "half.part") << "half";
  Server server(kept);
  EXPECT_THAT(server.said(),
              ContainsRegex("2 of [0-9]+ kept states are of no use and were removed"));
  EXPECT_FALSE(fs::exists(beside / "half.part"));
  EXPECT_EQ(turn(server.port(), second), uninterrupted);
  EXPECT_EQ(server.metric("triax_cache_disk_reads_total"), 1);
  EXPECT_EQ(server.metric("triax_cache_disk_faults_total"), 2);
}

TEST_F(OnDisk, KilledAtAnyMomentItStartsAgain) {
  const json body = question("again and again " + std::string(400, 'a'), 12);
  std::string alone;
  std::mt19937 dice(1);
  for (int round = 0; round < 5; ++round) {
    Server server(words());
    const std::string answer = ask(server.port(), body);
    if (round == 0) alone = answer;
    EXPECT_EQ(answer, alone);
    std::thread more([&] {
      try {
        for (int i = 0; i < 50; ++i) {
          json next = body;
          next["messages"][0]["content"] =
              fmt::format("{} of round {}, {}", i, round, std::string(300, 'b'));
          http(server.port(), "POST", kChat, next.dump());
        }
      } catch (const std::exception&) {  // it is gone
      }
    });
    std::this_thread::sleep_for(
        std::chrono::milliseconds(std::uniform_int_distribution<int>(0, 120)(dice)));
    server.signal(SIGKILL);
    server.wait();
    more.join();
  }
}

// A quota of file sizes stands for a full disk: each write of a state fails in its middle.
TEST_F(OnDisk, AFullDiskStopsNothingButKeeping) {
  Server server(words());
  rlimit limit{16384, 16384};
  ASSERT_EQ(::prlimit(server.process(), RLIMIT_FSIZE, &limit, nullptr), 0);
  json second = first_turn(server.port());
  EXPECT_TRUE(server.reaches("triax_cache_disk_faults_total", 1));
  EXPECT_GT(turn(server.port(), second).second, 300) << "memory still keeps it";
  for (int i = 0; i < 5; ++i) {
    EXPECT_NE(ask(server.port(), question(fmt::format("{}{}", i, std::string(200, 'f')), 8)), "");
  }
  EXPECT_EQ(server.metric("triax_cache_disk_writes_total"), 0);
  EXPECT_EQ(server.metric("triax_cache_disk_bytes"), 0);
  const std::string said = server.said();
  const std::size_t told = said.find("states are not kept on disk for now");
  ASSERT_NE(told, std::string::npos) << said;
  EXPECT_EQ(said.find("states are not kept on disk", told + 1), std::string::npos) << "once";
  EXPECT_TRUE(states().empty());
  EXPECT_EQ(server.stop(), 0);
}

}  // namespace
}  // namespace triax
