// `triax chat`: a conversation in the terminal.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <optional>
#include <random>

#include "triax/cli/chat_session.h"
#include "triax/cli/commands.h"
#include "triax/cli/format.h"
#include "triax/cli/ids_file.h"
#include "triax/cli/interrupt.h"
#include "triax/cli/line_input.h"
#include "triax/cli/memory.h"
#include "triax/tokenizer/rank_file.h"

namespace triax::cli {
namespace {

double rate(std::size_t n, double seconds) {
  return seconds > 0 ? static_cast<double>(n) / seconds : 0;
}

template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Sums over all answers.
struct Totals {
  std::size_t answers = 0, computed = 0, reused = 0, generated = 0, steps = 0;
  double prompt_seconds = 0, decode_seconds = 0;

  void add(const AnswerResult& r) {
    ++answers;
    computed += r.prompt_tokens - r.reused_tokens;
    reused += r.reused_tokens;
    generated += r.generated.ids.size();
    steps += r.generated.decode_steps;
    prompt_seconds += r.prompt_seconds;
    decode_seconds += r.generated.decode_seconds;
  }
};

class Chat {
 public:
  Chat(const ChatCommand& c, Session& session)
      : command_(c),
        session_(session),
        chat_(session),
        dim_(::isatty(STDERR_FILENO) == 1),
        thinking_(!c.hide_thinking) {
    chat_.recompute = c.recompute;
    options_.sampling = {c.temperature, c.top_p, c.top_k, c.min_p, 0};
    options_.max_tokens = c.max_tokens;
    options_.stop_ids = session.loaded->stop_ids();
    check_sampling(options_.sampling);
    std::random_device device;
    seed_ = c.seed ? *c.seed : (std::uint64_t{device()} << 32 | device()) >> 1;
    chat_.set_effort(c.effort);
    if (!c.load.empty()) load(c.load);
    if (!c.system.empty()) chat_.set_system(c.system);
  }

  int run() {
    const bool terminal = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
    const auto input =
        open_line_input(command_.no_history ? std::filesystem::path() : standard_history());
    // Between an answer's end and the next prompt Ctrl-C would end the program, and the
    // conversation.
    std::optional<InterruptShield> shield;
    if (terminal) shield.emplace();
    if (terminal) say("/help lists the commands; Ctrl-C stops an answer, Ctrl-D ends the chat");
    while (!quit_) {
      const std::optional<std::string> line = input->read("> ");
      if (!line) break;
      if (line->find_first_not_of(" \t\r\n") == std::string::npos) continue;
      try {
        take(*line);
      } catch (const Interrupted&) {
        stopped_ = true;
        say("interrupted before the answer began; /retry asks again");
      } catch (const Error& error) {
        say(error.what());
        failed_ = true;
      }
      // Ctrl-C in a script ends it; at the terminal it ends one answer.
      if (stopped_ && !terminal) return kInterruptedExit;
      stopped_ = false;
    }
    if (terminal && !quit_) std::fputc('\n', stdout);
    return failed_ && !terminal ? 1 : 0;
  }

 private:
  struct Entry {
    std::string_view name, argument, what;
    void (Chat::*act)(const std::string& argument);
  };
  static const std::array<Entry, 16> kEntries;

  // What is not the answer: on stderr, dimmed where that is a terminal.
  void say(std::string_view line) const {
    std::fflush(stdout);
    fmt::print(stderr, "{}{}{}\n", dim_ ? "\033[2m" : "", line, dim_ ? "\033[0m" : "");
  }

  void take(const std::string& line) {
    if (line[0] != '/') {
      chat_.ask(line);
      answer();
    } else if (line.starts_with("//")) {
      chat_.ask(line.substr(1));
      answer();
    } else {
      const std::size_t blank = line.find_first_of(" \t\n");
      const std::string name = line.substr(0, blank);
      std::string argument = blank == std::string::npos ? "" : line.substr(blank + 1);
      argument.erase(0, argument.find_first_not_of(" \t\n"));
      for (const Entry& entry : kEntries) {
        if (entry.name == name) return (this->*entry.act)(argument);
      }
      fail("there is no command {}; /help lists them, // starts a message with a slash",
           in_quotes(name));
    }
  }

  void answer() {
    options_.sampling.seed = seed_ + chat_.messages().size();
    const InterruptGuard guard;
    const AnswerResult r = chat_.answer(options_, AnswerStyle::standard(true, thinking_));
    totals_.add(r);
    stopped_ = r.interrupted;
    const char* why = r.interrupted                          ? "interrupted"
                      : r.finish == chat::TurnFinish::length ? "at the limit; /tokens raises it"
                      : r.finish == chat::TurnFinish::stop   ? "done"
                                                             : "calls tools";
    const std::size_t computed = r.prompt_tokens - r.reused_tokens;
    say(fmt::format("prompt {} tokens, {} new ({} tokens/s); {} generated ({} tokens/s); {}",
                    grouped(r.prompt_tokens), grouped(computed),
                    human_rate(rate(computed, r.prompt_seconds)), grouped(r.generated.ids.size()),
                    human_rate(rate(r.generated.decode_steps, r.generated.decode_seconds)), why));
  }

  void help(const std::string&) {
    std::string out;
    for (const Entry& entry : kEntries) {
      out += fmt::format("  {:<22} {}\n", fmt::format("{} {}", entry.name, entry.argument),
                         entry.what);
    }
    say(out + "  a line that ends with \\ goes on in the next; // starts a message with a slash");
  }
  void clear(const std::string&) {
    chat_.clear();
    say("the conversation is empty");
  }
  void system(const std::string& text) {
    chat_.set_system(text);
    say(text.empty() ? "no system message" : "the system message is set");
  }
  void effort(const std::string& level) {
    if (!level.empty()) chat_.set_effort(level);
    say("effort: " + chat_.effort());
  }
  void thinking(const std::string& choice) {
    if (choice != "on" && choice != "off" && !choice.empty()) fail("/thinking: on or off");
    if (!choice.empty()) thinking_ = choice == "on";
    say(thinking_ ? "thinking is shown" : "thinking is hidden");
  }
  void seed(const std::string& text) {
    if (!text.empty()) {
      const auto value = number<std::uint64_t>(text);
      if (!value) fail("/seed: {} is no whole number", in_quotes(text));
      seed_ = *value;
    }
    say(fmt::format("seed: {}", seed_));
  }
  void set_sampling(const std::string& name, const std::string& text,
                    float SamplingParams::* field) {
    if (!text.empty()) {
      const auto value = number<float>(text);
      if (!value) fail("{}: {} is no number", name, in_quotes(text));
      SamplingParams changed = options_.sampling;
      changed.*field = *value;
      check_sampling(changed);
      options_.sampling = changed;
    }
    say(fmt::format("{}: {}", name.substr(1), options_.sampling.*field));
  }
  void temp(const std::string& text) { set_sampling("/temp", text, &SamplingParams::temperature); }
  void top_p(const std::string& text) { set_sampling("/top-p", text, &SamplingParams::top_p); }
  void tokens(const std::string& text) {
    if (!text.empty()) {
      const auto value = number<std::size_t>(text);
      if (!value || *value == 0) fail("/tokens: {} is no number from 1 on", in_quotes(text));
      options_.max_tokens = *value;
    }
    say(fmt::format("at most {} tokens an answer", grouped(options_.max_tokens)));
  }
  void retry(const std::string&) {
    chat_.take_back_answer();
    const auto& messages = chat_.messages();
    if (messages.empty() || messages.back().author == chat::Author::system) {
      fail("/retry: there is no question yet");
    }
    answer();
  }
  void undo(const std::string&) {
    if (!chat_.take_back_turn()) fail("/undo: there is nothing to take back");
    say(fmt::format("taken back; {} messages are left", chat_.messages().size()));
  }
  void save(const std::string& file) {
    if (file.empty()) fail("/save: name a file");
    write_text_file(
        file, chat::json_text(chat::request_json(chat_.conversation()), chat::kJsonCompact) + "\n");
    say(fmt::format("{} messages are in {}", chat_.messages().size(), file));
  }
  void load(const std::string& file) {
    if (file.empty()) fail("/load: name a file");
    try {
      chat_.replace(chat::parse_conversation(read_text_file(file)));
    } catch (const chat::RequestError& error) {
      fail("{}: {}", file, error.what());
    }
    say(fmt::format("{} messages from {}", chat_.messages().size(), file));
  }
  void stats(const std::string&) {
    const Totals& t = totals_;
    say(fmt::format("{} answers, {} messages, effort {}, temperature {}, top-p {}, seed {}",
                    t.answers, chat_.messages().size(), chat_.effort(),
                    options_.sampling.temperature, options_.sampling.top_p, seed_));
    say(fmt::format("prompt: {} tokens computed ({} tokens/s), {} reused", grouped(t.computed),
                    human_rate(rate(t.computed, t.prompt_seconds)), grouped(t.reused)));
    say(fmt::format("generated: {} tokens ({} tokens/s)", grouped(t.generated),
                    human_rate(rate(t.steps, t.decode_seconds))));
    say(fmt::format("state {}, memory {}, {} threads", human_bytes(chat_.state_bytes()),
                    human_bytes(memory_use().peak), session_.threads));
  }
  void quit(const std::string&) { quit_ = true; }

  const ChatCommand& command_;
  Session& session_;
  ChatSession chat_;
  GenerateOptions options_;
  Totals totals_;
  bool dim_;
  bool thinking_;
  std::uint64_t seed_ = 0;
  bool quit_ = false, stopped_ = false, failed_ = false;
};

const std::array<Chat::Entry, 16> Chat::kEntries = {{
    {"/help", "", "this list", &Chat::help},
    {"/clear", "", "forget the conversation, keep the system message", &Chat::clear},
    {"/system", "[TEXT]", "set the system message; without a text: none", &Chat::system},
    {"/effort", "[LEVEL]", "low, high, max, or none for no thinking", &Chat::effort},
    {"/thinking", "[on|off]", "show or hide the thinking", &Chat::thinking},
    {"/seed", "[N]", "seed of the sampler", &Chat::seed},
    {"/temp", "[X]", "temperature; 0 takes the likeliest token", &Chat::temp},
    {"/top-p", "[P]", "keep the likeliest tokens up to this sum", &Chat::top_p},
    {"/tokens", "[N]", "longest answer", &Chat::tokens},
    {"/retry", "", "another answer to the last question", &Chat::retry},
    {"/undo", "", "take back the last question and its answer", &Chat::undo},
    {"/save", "FILE", "write the conversation as JSON", &Chat::save},
    {"/load", "FILE", "read one back", &Chat::load},
    {"/stats", "", "tokens, speed and memory so far", &Chat::stats},
    {"/quit", "", "end the chat (also Ctrl-D)", &Chat::quit},
    {"/exit", "", "the same", &Chat::quit},
}};

}  // namespace

int execute(const ChatCommand& c) {
  Session session(c, c.precision);
  return Chat(c, session).run();
}

}  // namespace triax::cli
