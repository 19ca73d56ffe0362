// The command line. The only file that includes CLI11, which is slow to compile.
#include "triax/cli/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <memory>

namespace triax::cli {
namespace {

constexpr std::string_view kOverview =
    "triax {}: Kimi K3 on this machine's processor\n"
    "\n"
    "usage: triax COMMAND [options]        triax COMMAND --help\n"
    "\n"
    "  run         an answer to a prompt, or the text that follows it\n"
    "  chat        a conversation in the terminal\n"
    "  serve       the model over HTTP, as OpenAI's and Anthropic's clients speak\n"
    "  logits      logits of every position as a .npy file\n"
    "  eval        loss, perplexity and bits per byte of a text\n"
    "  tokenize    text to token ids\n"
    "  detokenize  token ids to text\n"
    "  inspect     configuration, parameters and bytes of a model\n"
    "  synth       write a random checkpoint in the released layout\n"
    "  pack        write a checkpoint whose trunk is 8-bit\n"
    "  train       train a model of K3's architecture on texts\n"
    "  distill     one student from a teacher for each domain and effort\n"
    "  data        write training and held-out data of the small world\n"
    "  selftest    does this build compute K3 right on this machine?\n"
    "  bench       speed: tokens per second, and which part of this machine's limits that is\n"
    "  doctor      processor, memory, disk and libraries of this machine\n"
    "\n"
    "Every command that uses a model takes -m FOLDER, and most take --json and --threads N.\n"
    "A first try:  triax run \"The three axes of a transformer are\" -n 32";

// A number between two limits, named in the message. NaN is outside.
class Between : public CLI::Validator {
 public:
  Between(double low, double high, bool low_itself = true, bool high_itself = true) {
    func_ = [=](std::string& text) -> std::string {
      double value = 0;
      const char* end = text.data() + text.size();
      const auto [at, error] = std::from_chars(text.data(), end, value);
      const bool inside = error == std::errc() && at == end &&
                          (low_itself ? value >= low : value > low) &&
                          (high_itself ? value <= high : value < high);
      if (inside) return {};
      return fmt::format("{} is not a number with {} {} x {} {}", in_quotes(text), low,
                         low_itself ? "<=" : "<", high_itself ? "<=" : "<", high);
    };
  }
};

// A whole number in a range.
class Whole : public CLI::Validator {
 public:
  Whole(std::uint64_t low, std::uint64_t high) {
    func_ = [=](std::string& text) -> std::string {
      std::uint64_t value = 0;
      const char* end = text.data() + text.size();
      const auto [at, error] = std::from_chars(text.data(), end, value);
      if (error == std::errc() && at == end && value >= low && value <= high) return {};
      return fmt::format("{} is not a whole number from {} to {}", in_quotes(text), low, high);
    };
  }
};

constexpr std::uint64_t kManyTokens = 1u << 30;
constexpr auto kAnySeed = ~std::uint64_t{0};

class Parser {
 public:
  Parser() {
    app_.set_help_flag();
    app_.add_flag("-h,--help", help_);
    app_.add_flag("--version", version_);
    add_run();
    add_chat();
    add_serve();
    add_logits();
    add_eval();
    add_bench();
    add_tokenize();
    add_detokenize();
    add_inspect();
    add_synth();
    add_pack();
    add_train();
    add_distill();
    add_data();
    add_selftest();
    add_doctor();
  }

  Parsed parse(int argc, const char* const* argv) {
    try {
      if (argc > 1 && argv[1][0] != '-' && !known(argv[1])) {
        return wrong(
            fmt::format("there is no command {}; commands: {}", in_quotes(argv[1]), names()));
      }
      app_.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
      return {std::nullopt, 0, subcommand_help()};
    } catch (const CLI::ParseError& e) {
      return wrong(e.what());
    }
    if (version_) return {std::nullopt, 0, "triax " TRIAX_VERSION};
    if (help_) return {std::nullopt, 0, overview()};
    if (!take_) return {std::nullopt, 2, overview()};
    return {take_(), 0, ""};
  }

 private:
  static std::string overview() { return fmt::format(kOverview, TRIAX_VERSION); }

  bool known(const char* name) const {
    for (const CLI::App* sub : app_.get_subcommands(nullptr)) {
      if (sub->get_name() == name) return true;
    }
    return false;
  }

  std::string names() const {
    std::string out;
    for (const CLI::App* sub : app_.get_subcommands(nullptr)) {
      out += (out.empty() ? "" : ", ") + sub->get_name();
    }
    return out;
  }

  std::string subcommand_help() const {
    std::string text = app_.get_subcommands().at(0)->help("triax");
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
  }

  Parsed wrong(std::string message) const {
    std::replace(message.begin(), message.end(), '\n', ' ');
    const auto chosen = app_.get_subcommands();
    const std::string where = chosen.empty() ? "" : chosen[0]->get_name() + ": ";
    const std::string help = chosen.empty() ? "" : chosen[0]->get_name() + " ";
    return {std::nullopt, 2,
            fmt::format("triax: {}{} (`triax {}--help` says how)", where, message, help)};
  }

  // A subcommand whose options fill one struct.
  template <class C>
  CLI::App* command(const char* name, const char* what, const char* example, C& options) {
    CLI::App* sub = app_.add_subcommand(name, what);
    sub->get_formatter()->column_width(28);
    sub->set_help_flag("-h,--help", "this text");
    sub->footer(std::string("Example:\n  ") + example);
    sub->callback([this, &options] { take_ = [&options]() -> Command { return options; }; });
    return sub;
  }

  static void add_model(CLI::App* sub, Common& c) {
    sub->add_option("-m,--model", c.model, "model folder (default: models/nano of the clone)")
        ->type_name("FOLDER");
  }
  static void add_threads(CLI::App* sub, Common& c) {
    sub->add_option("--threads", c.threads, "threads (default: every core this process may use)")
        ->check(Whole(1, 1024))
        ->type_name("N");
  }
  static void add_json(CLI::App* sub, Common& c) {
    sub->add_flag("--json", c.json, "one JSON object instead of text");
  }
  static void add_trunk(CLI::App* sub, Common& c) {
    const std::map<std::string, TrunkChoice> choices{{"auto", TrunkChoice::automatic},
                                                     {"mapped", TrunkChoice::mapped},
                                                     {"resident", TrunkChoice::resident},
                                                     {"int8", TrunkChoice::int8}};
    sub->add_option_function<std::string>(
           "--trunk", [&c, choices](const std::string& s) { c.trunk = choices.at(s); },
           "weights outside the experts: mapped, resident (in memory, faster), int8 (8-bit, made "
           "now), auto (resident if it takes at most half of the free memory)")
        ->check(CLI::IsMember({"auto", "mapped", "resident", "int8"}))
        ->type_name("HOW");
  }
  static void add_precision(CLI::App* sub, Precision& p) {
    sub->add_option_function<std::string>(
           "--precision",
           [&p](const std::string& s) { p = s == "f32" ? Precision::f32 : Precision::bf16; },
           "f32 or bf16 activations (default bf16)")
        ->check(CLI::IsMember({"f32", "bf16"}))
        ->type_name("MODE");
  }
  static void add_chunk(CLI::App* sub, const char* names, std::size_t& chunk) {
    sub->add_option(
           names, chunk,
           fmt::format("tokens in one pass (default {}); the sequence goes on from pass to pass",
                       chunk))
        ->check(Whole(1, 1u << 20))
        ->type_name("N");
  }

  // Length and sampling of what is generated; the defaults are those of the struct.
  template <class C>
  static void add_sampling(CLI::App* sub, C& c) {
    sub->add_option("-n", c.max_tokens,
                    fmt::format("stop after so many tokens (default {})", c.max_tokens))
        ->check(Whole(1, kManyTokens))
        ->type_name("N");
    sub->add_option("--temp", c.temperature, "temperature (default 1); 0 takes the likeliest token")
        ->check(Between(0, 100))
        ->type_name("X");
    sub->add_option("--top-p", c.top_p,
                    fmt::format("keep the likeliest tokens up to this sum (default {})", c.top_p))
        ->check(Between(0, 1, false))
        ->type_name("P");
    sub->add_option("--top-k", c.top_k, "keep the K likeliest tokens (default 0: all)")
        ->check(Whole(0, kManyTokens))
        ->type_name("K");
    sub->add_option("--min-p", c.min_p, "drop tokens below P times the likeliest (default 0)")
        ->check(Between(0, 1, true, false))
        ->type_name("P");
    sub->add_option_function<std::uint64_t>(
           "--seed", [&c](const std::uint64_t& seed) { c.seed = seed; },
           "same seed, same text (default: drawn, and told at the end)")
        ->check(Whole(0, kAnySeed))
        ->type_name("N");
  }
  static void add_effort(CLI::App* sub, std::string& effort, bool& hide_thinking) {
    sub->add_option("--effort", effort,
                    "how much to think: low, high, max (default), or none for no thinking")
        ->check(CLI::IsMember({"low", "high", "max", "none"}))
        ->type_name("LEVEL");
    sub->add_flag("--hide-thinking", hide_thinking, "show the answer alone");
  }

  void add_run() {
    RunCommand& c = run_;
    CLI::App* sub = command(
        "run",
        "The answer to a prompt, where the model has a chat format; else, and with --raw, the "
        "text that\nfollows it. Text on stdout, the rest on stderr.",
        "triax run -m models/k3 \"Once upon a time\" -n 100 --temp 0.6", c);
    sub->add_option("prompt", c.prompt,
                    "the question or the text to go on from; - reads standard input");
    add_model(sub, c);
    add_sampling(sub, c);
    add_effort(sub, c.effort, c.hide_thinking);
    sub->add_flag("--raw", c.raw, "go on from the prompt as plain text, without a chat format");
    sub->add_option("--ids", c.ids_file,
                    "token ids instead of a prompt: JSON array or blanks between")
        ->type_name("FILE");
    add_precision(sub, c.precision);
    sub->add_flag("--stats", c.stats, "times, memory and state in detail at the end");
    add_trunk(sub, c);
    add_threads(sub, c);
    add_json(sub, c);
  }

  void add_chat() {
    ChatCommand& c = chat_;
    CLI::App* sub =
        command("chat",
                "A conversation. Without a terminal each line of standard input is a "
                "message; answers on stdout,\nthe rest on stderr. /help in the chat lists "
                "its commands.",
                "triax chat -m models/k3 --system \"You answer in one sentence.\"", c);
    add_model(sub, c);
    sub->add_option("--system", c.system, "the system message")->type_name("TEXT");
    sub->add_option("--load", c.load, "go on with a conversation that /save wrote")
        ->type_name("FILE");
    add_sampling(sub, c);
    add_effort(sub, c.effort, c.hide_thinking);
    sub->add_flag("--no-history", c.no_history, "keep no file of the lines that were typed");
    sub->add_flag("--recompute", c.recompute, "compute every turn from its first token on");
    add_precision(sub, c.precision);
    add_trunk(sub, c);
    add_threads(sub, c);
  }

  void add_serve() {
    ServeCommand& c = serve_;
    CLI::App* sub =
        command("serve",
                "The model over HTTP: /v1/chat/completions, /v1/messages, /v1/responses, "
                "/v1/completions and\nmore (docs/serving.md). Ctrl-C ends it when what runs is "
                "done.",
                "triax serve -m models/k3 --port 8080", c);
    add_model(sub, c);
    sub->add_option("--host", c.host, "address to listen on (default 127.0.0.1: this machine only)")
        ->type_name("ADDRESS");
    sub->add_option("--port", c.port, "port (default 8080); 0 takes a free one and prints it")
        ->check(Whole(0, 65535))
        ->type_name("N");
    sub->add_option("--api-key", c.api_keys,
                    "ask for this key (also TRIAX_API_KEY); may come again")
        ->type_name("KEY");
    sub->add_option("--api-key-file", c.api_key_file, "keys, one a line")->type_name("FILE");
    sub->add_option("--profile", c.profile,
                    "open (default): the usual ranges; kimi: only values that the hosted API takes")
        ->check(CLI::IsMember({"open", "kimi"}))
        ->type_name("NAME");
    sub->add_option("--name", c.name, "the model's name in answers (default: the folder's)")
        ->type_name("NAME");
    sub->add_option("--cors", c.cors, "web pages of this origin may call; * for any")
        ->type_name("ORIGIN");
    sub->add_option("--log", c.log, "requests as JSON lines (default standard error); none: no log")
        ->type_name("FILE");
    add_serve_limits(sub, c);
    add_precision(sub, c.precision);
    add_trunk(sub, c);
    add_threads(sub, c);
  }

  static void add_serve_limits(CLI::App* sub, ServeCommand& c) {
    sub->add_option("--users", c.users, "sequences at once (default 64)")
        ->check(Whole(1, 4096))
        ->type_name("N");
    sub->add_option("--queue", c.queue, "requests that may wait (default 256); more are told 503")
        ->check(Whole(0, 1u << 20))
        ->type_name("N");
    sub->add_option("--connections", c.connections, "open connections (default 1024)")
        ->check(Whole(1, 1u << 20))
        ->type_name("N");
    sub->add_option("--context", c.context, "longest sequence in tokens (default 1048576)")
        ->check(Whole(64, kManyTokens))
        ->type_name("N");
    sub->add_option("--memory", c.memory_mib,
                    "MiB for states of sequences and the prefix cache (default: half of what is "
                    "free)")
        ->check(Whole(1, 1u << 30))
        ->type_name("N");
    sub->add_option("--cache-dir", c.cache_folder, "keep states on disk in this folder too")
        ->type_name("FOLDER");
    sub->add_option("--cache-disk", c.cache_disk_mib, "MiB of them at most (default 8192)")
        ->check(Whole(1, 1u << 30))
        ->type_name("N");
    sub->add_flag("--no-turn-memory", c.no_turn_memory,
                  "encode past answers from their text, not as they were generated");
    sub->add_option("--body-limit", c.body_mib, "MiB of a request's body at most (default 32)")
        ->check(Whole(1, 1u << 12))
        ->type_name("N");
    sub->add_option("--grace", c.grace_seconds,
                    "seconds that running answers are given at the end (default 60)")
        ->check(Whole(0, 86400))
        ->type_name("N");
    add_chunk(sub, "--chunk", c.chunk);
  }

  void add_logits() {
    LogitsCommand& c = logits_;
    CLI::App* sub = command("logits", "Logits of every position as float32 [T, vocab].",
                            "triax logits -m models/k3 --ids ids.json --out logits.npy", c);
    add_model(sub, c);
    sub->add_option("--ids", c.ids_file, "JSON array, or ids separated by white space; - for stdin")
        ->required()
        ->type_name("FILE");
    sub->add_option("--out", c.out, "the .npy file to write")->required()->type_name("FILE.npy");
    sub->add_option("--dump", c.dump, "also every intermediate value, one .npy each by its name")
        ->type_name("FOLDER");
    add_precision(sub, c.precision);
    add_chunk(sub, "--chunk", c.chunk);
    sub->add_option_function<std::string>(
           "--paths", [&c](const std::string& s) { c.training_paths = s == "train"; },
           "train: training's forward pass (recurrent KDA, expanded MLA), all ids in one pass; "
           "default: inference's")
        ->check(CLI::IsMember({"default", "train"}))
        ->type_name("WHICH");
    add_trunk(sub, c);
    add_threads(sub, c);
    add_json(sub, c);
  }

  void add_eval() {
    EvalCommand& c = eval_;
    CLI::App* sub = command("eval", "Loss (nats a token), perplexity and bits per byte of a text.",
                            "triax eval -m models/k3 book.txt --against precision=f32", c);
    sub->add_option("file", c.file, "the text; - reads standard input");
    add_suite(sub, c);
    add_model(sub, c);
    sub->add_flag("--ids", c.ids, "the file holds token ids, not text");
    add_precision(sub, c.precision);
    add_chunk(sub, "--context,--chunk", c.chunk);
    sub->add_option("--against", c.against,
                    "compute a second time with other settings and compare the distributions: "
                    "precision=f32|bf16, isa=NAME, chunk=N, threads=N, "
                    "trunk=stored|int8|int8:FAMILY+FAMILY; several with commas")
        ->type_name("SETTINGS");
    sub->add_flag("--by-family", c.by_family,
                  "with --against trunk=int8: also what each family of weights costs alone");
    add_trunk(sub, c);
    add_threads(sub, c);
    add_json(sub, c);
  }

  void add_bench() {
    BenchCommand& c = bench_;
    CLI::App* sub =
        command("bench",
                "Speed on random ids: prompt, decoding, several sequences at once; with "
                "this machine's\nread bandwidth and multiply-add peak from the same run.",
                "triax bench -m models/k3 --only pp512,tg128@16,tg64@16x8 --profile", c);
    add_model(sub, c);
    sub->add_option("--prompt", c.prompt, "lengths of prompts (default 512,2048)")
        ->type_name("N,N");
    sub->add_option("--decode", c.decode, "tokens decoded at a depth (default 128@16,64@2048)")
        ->type_name("N@D,N@D");
    sub->add_option("--sequences", c.sequences,
                    "sequences at once, 64 tokens each from depth 16 (default 4,8)")
        ->type_name("S,S");
    sub->add_option("--only", c.only,
                    "these measurements instead: pp512, tg128@16, tg64@16x8 with commas")
        ->type_name("NAMES");
    sub->add_option("--repeats", c.repeats, "runs of each; the median counts (default 3)")
        ->check(Whole(1, 1000))
        ->type_name("N");
    sub->add_option("--ids-seed", c.ids_seed, "same seed, same ids (default 1)")
        ->check(Whole(0, kAnySeed))
        ->type_name("N");
    sub->add_flag("--profile", c.profile, "also time, bytes and operations by operator family");
    sub->add_option("--limits-mib", c.limits_mib,
                    "buffer that the read bandwidth is measured on (default 1024); 0 leaves the "
                    "machine's limits out")
        ->check(Whole(0, 1u << 20))
        ->type_name("N");
    sub->add_flag("--serve", c.serve,
                  "read names of measurements (and warm, limits, memory) from standard input and "
                  "answer each with one line of JSON: for scripts that compare engines");
    add_precision(sub, c.precision);
    add_chunk(sub, "--chunk", c.chunk);
    add_trunk(sub, c);
    add_threads(sub, c);
    add_json(sub, c);
  }

  void add_tokenize() {
    TokenizeCommand& c = tokenize_;
    CLI::App* sub =
        command("tokenize", "Token ids of a text.", "triax tokenize \"Hello, world\" --pieces", c);
    sub->add_option("text", c.text, "the text; - reads standard input");
    add_model(sub, c);
    sub->add_option("--file", c.file, "a file instead of a text")->type_name("FILE");
    sub->add_flag("--pieces", c.pieces, "one line a token: id and bytes");
    sub->add_flag("--special", c.special, "names of special tokens in the text become their ids");
    add_json(sub, c);
  }

  void add_detokenize() {
    DetokenizeCommand& c = detokenize_;
    CLI::App* sub =
        command("detokenize", "Text of token ids.", "triax detokenize 19180 11 2695", c);
    sub->add_option("ids", c.ids, "token ids; - reads standard input");
    add_model(sub, c);
    sub->add_option("--file,--ids", c.file, "JSON array, or ids separated by white space")
        ->type_name("FILE");
    add_json(sub, c);
  }

  void add_inspect() {
    InspectCommand& c = inspect_;
    CLI::App* sub = command("inspect", "Schedule, exact parameters and bytes by component.",
                            "triax inspect models/k3/config.json --json", c);
    sub->add_option("path", c.path,
                    "model folder or config.json; or k3, tiny, small, bench for built-in ones");
    add_model(sub, c);
    add_json(sub, c);
  }

  void add_data() {
    DataCommand& c = data_;
    CLI::App* sub = command("data",
                            "Training and held-out documents of the small world: stories with "
                            "questions, sums, tool calls, talk.\nWrites train/*.jsonl, "
                            "heldout/*.jsonl and manifest.json.",
                            "triax data --out data --seed 1 --tokens 30000000", c);
    sub->add_option("--out", c.out, "folder to write")->required()->type_name("FOLDER");
    sub->add_option("--seed", c.seed, "same seed, same documents (default 1)")
        ->check(Whole(0, kAnySeed))
        ->type_name("N");
    auto* documents = sub->add_option("--documents", c.documents, "so many training documents")
                          ->check(Whole(1, kManyTokens))
                          ->type_name("N");
    sub->add_option("--tokens", c.tokens, "training tokens, about (default 30000000)")
        ->check(Whole(1, ~std::uint64_t{0} >> 16))
        ->excludes(documents)
        ->type_name("N");
    sub->add_option("--heldout", c.heldout, "held-out documents (default 2000)")
        ->check(Whole(0, kManyTokens))
        ->type_name("N");
    sub->add_option("--kinds", c.kinds,
                    "only these kinds: story_small, story_medium, story_long, arithmetic, tools, "
                    "dialogue, tale, prose")
        ->delimiter(',')
        ->type_name("NAME,...");
    sub->add_option("--wordnet", c.wordnet,
                    "also WordNet's glosses: the folder of Debian's wordnet-base")
        ->type_name("FOLDER");
    sub->add_option("--prose", c.prose, "also these plain texts")->type_name("FILE...");
    sub->add_flag("--force", c.force, "write into a folder that is not empty");
    add_json(sub, c);
  }

  void add_suite(CLI::App* sub, EvalCommand& c) {
    sub->add_option("--suite", c.suite,
                    "fresh held-out items with checked answers instead of a text: nano")
        ->check(CLI::IsMember({"nano"}))
        ->type_name("NAME");
    sub->add_option("--seed", c.seed, "with --suite: same seed, same items (default 1)")
        ->check(Whole(0, kAnySeed))
        ->type_name("N");
    sub->add_option("--items", c.items,
                    "with --suite: prompt, truth and answer of each, JSON lines")
        ->type_name("FILE");
    sub->add_option("--stories", c.stories, "with --suite: so many stories (default 2000)")
        ->check(Whole(0, 1000000))
        ->type_name("N");
    sub->add_option("--sums", c.sums, "with --suite: so many sums (default 1000)")
        ->check(Whole(0, 1000000))
        ->type_name("N");
    sub->add_option("--tools", c.tools, "with --suite: so many tool items (default 500)")
        ->check(Whole(0, 1000000))
        ->type_name("N");
    sub->add_option("--effort", c.effort,
                    "with --suite: low, high, max, or mixed: each in turn (default mixed)")
        ->check(CLI::IsMember({"low", "high", "max", "mixed"}))
        ->type_name("LEVEL");
    sub->add_option("--batch", c.batch, "with --suite: sequences at once (default 32)")
        ->check(Whole(1, 4096))
        ->type_name("N");
    sub->add_option("--data", c.data,
                    "with --suite: a folder of `triax data`; items it shares are counted")
        ->type_name("FOLDER");
  }

  void add_synth() {
    SynthCommand& c = synth_;
    CLI::App* sub = command("synth", "A random checkpoint in the released layout.",
                            "triax synth --config tiny --out /tmp/tiny --seed 1", c);
    sub->add_option("--config", c.config, "k3, tiny, small, bench, or a config.json")
        ->required()
        ->type_name("NAME|FILE");
    sub->add_option("--out", c.out, "the folder to write; must be empty or new")
        ->required()
        ->type_name("FOLDER");
    sub->add_option("--seed", c.seed, "same seed, same bytes (default 20260727)")
        ->check(Whole(0, kAnySeed))
        ->type_name("N");
    sub->add_option("--shard-mib", c.shard_mib, "largest shard in MiB (default 512)")
        ->check(Whole(1, 1u << 20))
        ->type_name("N");
    sub->add_option("--shards", c.shards, "so many shards of about equal size instead")
        ->check(Whole(1, 99999))
        ->type_name("N");
    sub->add_flag("--sparse", c.sparse, "true headers, holes for data: takes no room on the disk");
    sub->add_flag("--force", c.force, "write into a folder that is not empty");
    add_threads(sub, c);
    add_json(sub, c);
  }

  void add_pack() {
    PackCommand& c = pack_;
    CLI::App* sub = command("pack",
                            "A copy of a checkpoint whose trunk is 8-bit, in compressed-tensors "
                            "form; experts stay as they are.",
                            "triax pack models/k3 models/k3-int8", c);
    sub->add_option("model", c.from, "the model folder to copy")->required()->type_name("FOLDER");
    sub->add_option("out", c.out, "the folder to write; must be empty or new")
        ->required()
        ->type_name("FOLDER");
    sub->add_option("--trunk", "the form of the trunk (default and only choice: int8)")
        ->check(CLI::IsMember({"int8"}))
        ->type_name("int8");
    sub->add_flag("--force", c.force, "write into a folder that is not empty");
    add_threads(sub, c);
    add_json(sub, c);
  }

  void add_train() {
    TrainCommand& c = train_;
    CLI::App* sub =
        command("train",
                "Trains a model as a configuration says (docs/training.md): "
                "checkpoints, metrics, a report, and\nthe model in the released layout.",
                "triax train stories.toml --out runs/stories", c);
    sub->add_option("config", c.config, "a .toml or .json file; with --resume the one in --out");
    sub->add_option("--out", c.out, "the folder to write")->type_name("FOLDER");
    sub->add_flag("--resume", c.resume, "go on with the training in --out");
    sub->add_option("--init-from", c.init_from, "begin with the weights of this model")
        ->type_name("MODEL");
    sub->add_flag("--plan", c.plan, "say what would be trained, and with what, and end");
    sub->add_option("--steps", c.steps, "stop after so many steps in all, with a checkpoint")
        ->check(Whole(1, kManyTokens))
        ->type_name("N");
    sub->add_option("--tokens", c.tokens, "all stages shortened or lengthened to so many tokens")
        ->check(Whole(1, std::uint64_t{1} << 50))
        ->type_name("N");
    add_threads(sub, c);
    add_json(sub, c);
  }

  void add_distill() {
    DistillCommand& c = distill_;
    CLI::App* sub = command("distill",
                            "Trains a teacher for each domain and thinking effort, then one "
                            "student on its own samples\n(docs/training.md). The same command "
                            "again goes on where it stopped.",
                            "triax distill models/distill.toml --out runs/distill", c);
    sub->add_option("config", c.config, "a .toml or .json file")->required();
    sub->add_option("--out", c.out, "the folder to write")->required()->type_name("FOLDER");
    add_threads(sub, c);
    add_json(sub, c);
  }

  void add_selftest() {
    CLI::App* sub = command("selftest", "Checks this build on this machine against golden values.",
                            "triax selftest", selftest_);
    sub->add_option("--server", selftest_.server,
                    "check a server instead: does it keep the contract of K3's hosted API?")
        ->type_name("URL");
    sub->add_option("--api-key", selftest_.api_key, "key for the server (also TRIAX_API_KEY)")
        ->type_name("KEY");
    sub->add_option("--profile", selftest_.profile,
                    "values that the server takes: auto (default: ask it), open, kimi")
        ->check(CLI::IsMember({"auto", "open", "kimi"}))
        ->type_name("NAME");
    sub->add_option("--timeout", selftest_.timeout_seconds,
                    "seconds for an answer of the server (default 120)")
        ->check(Whole(1, 86400))
        ->type_name("S");
    add_threads(sub, selftest_);
    add_json(sub, selftest_);
  }

  void add_doctor() {
    CLI::App* sub = command("doctor", "What this machine is, as far as it matters here.",
                            "triax doctor", doctor_);
    add_model(sub, doctor_);
    sub->add_flag("--huge-pages", doctor_.huge_pages,
                  "read the model's files into huge pages of the page cache, as far as they are "
                  "not there: decoding is faster until they leave it");
    add_json(sub, doctor_);
  }

  CLI::App app_{"triax"};
  bool help_ = false, version_ = false;
  std::function<Command()> take_;
  RunCommand run_;
  ChatCommand chat_;
  ServeCommand serve_;
  LogitsCommand logits_;
  EvalCommand eval_;
  BenchCommand bench_;
  TokenizeCommand tokenize_;
  DetokenizeCommand detokenize_;
  DataCommand data_;
  InspectCommand inspect_;
  SynthCommand synth_;
  PackCommand pack_;
  TrainCommand train_;
  DistillCommand distill_;
  SelftestCommand selftest_;
  DoctorCommand doctor_;
};

}  // namespace

Parsed parse_options(int argc, const char* const* argv) {
  return Parser().parse(argc, argv);
}

}  // namespace triax::cli
