// Measures llama.cpp v0.5.0 through the C API of the prebuilt libraries in the npm package
// @node-llama-cpp/linux-x64 3.22.1. Declares only what it calls; the parameter structs are bytes
// whose offsets belong to that release (another one would read them wrong, so the driver asks for
// the libraries by their versioned names). bench/peers/compare.py compiles and runs it:
//
//   llama_peer_driver --bins DIR --model FILE.gguf --vocab N [--threads N]
//       names of measurements on standard input, one line of JSON for each on standard output:
//       "pp512", "tg128@16", "tg64@16x8" as `triax bench --serve` takes them; "warm", "memory"
//   ... --logits IDS.txt --out FILE.f32
//       logits of every position, float32 [T, vocab], without flash attention
//
// --bins: the folder with libggml-cpu-*.so; llama.cpp loads the best of those it finds.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

// ---- The part of llama.h that is used -----------------------------------------------------------

struct ModelParams {
  alignas(8) unsigned char bytes[80];
};
struct ContextParams {
  alignas(8) unsigned char bytes[160];
};
struct LlamaBatch {
  std::int32_t n_tokens;
  std::int32_t* token;
  float* embd;
  std::int32_t* pos;
  std::int32_t* n_seq_id;
  std::int32_t** seq_id;
  std::int8_t* logits;
};
// Offsets of parameters in release v0.5.0.
constexpr std::size_t kContextLength = 0, kBatch = 4, kMicroBatch = 8, kSequences = 12,
                      kThreads = 28, kThreadsBatch = 32, kFlashAttention = 52;

extern "C" {
ModelParams llama_model_default_params();
ContextParams llama_context_default_params();
void* llama_model_load_from_file(const char* path, ModelParams);
void* llama_init_from_model(void* model, ContextParams);
void llama_free(void* context);
int llama_decode(void* context, LlamaBatch);
LlamaBatch llama_batch_init(std::int32_t tokens, std::int32_t embd, std::int32_t seqs);
float* llama_get_logits_ith(void* context, std::int32_t row);
void* llama_get_memory(void* context);
void llama_memory_clear(void* memory, bool data);
const char* llama_print_system_info();
void llama_log_set(void (*log)(int, const char*, void*), void*);
void llama_backend_init();
void llama_synchronize(void* context);
std::size_t llama_state_seq_get_size(void* context, std::int32_t seq);
std::size_t llama_state_seq_get_data(void* context, std::uint8_t* to, std::size_t size,
                                     std::int32_t seq);
std::size_t llama_state_seq_set_data(void* context, const std::uint8_t* from, std::size_t size,
                                     std::int32_t seq);
void ggml_backend_load_all_from_path(const char* folder);
}

namespace {

constexpr std::int32_t kBatchTokens = 2048;
constexpr std::uint32_t kMicroBatchTokens = 512;  // llama.cpp's default
constexpr std::size_t kSingleContext = 4096, kContextOfMany = 2304;

template <class Params, class T>
void put(Params& params, std::size_t offset, T value) {
  std::memcpy(params.bytes + offset, &value, sizeof value);
}

// Only errors; loading a model is chatty.
void log_errors(int level, const char* text, void*) {
  if (level == 4) std::fputs(text, stderr);
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// A "Name:  123 kB" line of /proc/self/status, in bytes.
std::uint64_t status_bytes(const std::string& name) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(name + ":", 0) == 0) {
      return std::strtoull(line.c_str() + name.size() + 1, nullptr, 10) * 1024;
    }
  }
  return 0;
}

struct Options {
  std::string bins, model, logits, out;
  int threads = 2;
  int vocab = 0;
};

// "pp512", "tg128@16", "tg64@16x8".
struct Measurement {
  bool prompt = false;
  int tokens = 0, depth = 0, sequences = 1;
};

Measurement parse_measurement(const std::string& name) {
  Measurement m;
  char end = 0;
  if (std::sscanf(name.c_str(), "pp%d%c", &m.tokens, &end) == 1) {
    m.prompt = true;
  } else if (std::sscanf(name.c_str(), "tg%d@%dx%d%c", &m.tokens, &m.depth, &m.sequences, &end) !=
                 3 &&
             std::sscanf(name.c_str(), "tg%d@%d%c", &m.tokens, &m.depth, &end) != 2) {
    throw std::runtime_error("no such measurement: " + name);
  }
  return m;
}

struct Timing {
  double seconds = 0, processor = 0;
  int tokens = 0;
};

class Engine {
 public:
  explicit Engine(const Options& options) : options_(options) {
    const double start = seconds_now();
    model_ = llama_model_load_from_file(options.model.c_str(), llama_model_default_params());
    if (model_ == nullptr) throw std::runtime_error("cannot load " + options.model);
    load_seconds_ = seconds_now() - start;
    batch_ = llama_batch_init(kBatchTokens, 0, 1);
    need_context(1);
  }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  double load_seconds() const { return load_seconds_; }

  void warm() {
    fill(64, 0);
    llama_synchronize(context_);
  }

  Timing measure(const Measurement& m) {
    if (need_context(m.sequences)) warm();
    return m.prompt ? measure_prompt(m) : measure_decode(m);
  }

  // Logits of all positions in one pass.
  void write_logits(const std::vector<int>& ids, const std::string& file) {
    batch_.n_tokens = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) add(ids[i], static_cast<int>(i), 0, true);
    decode();
    std::ofstream out(file, std::ios::binary);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      out.write(reinterpret_cast<const char*>(llama_get_logits_ith(context_, static_cast<int>(i))),
                static_cast<std::streamsize>(sizeof(float)) * options_.vocab);
    }
    if (!out) throw std::runtime_error("cannot write " + file);
  }

 private:
  // A context for one sequence or for many, so that none pays for the other. True when it is new.
  bool need_context(int sequences) {
    if (context_ != nullptr && sequences_ == sequences) return false;
    if (context_ != nullptr) llama_free(context_);
    const bool logits = !options_.logits.empty();
    ContextParams params = llama_context_default_params();
    const std::size_t length =
        sequences == 1 ? kSingleContext : kContextOfMany * static_cast<std::size_t>(sequences);
    put(params, kContextLength, static_cast<std::uint32_t>(length));
    put(params, kBatch, static_cast<std::uint32_t>(kBatchTokens));
    put(params, kMicroBatch, kMicroBatchTokens);
    put(params, kSequences, static_cast<std::uint32_t>(sequences));
    put(params, kThreads, options_.threads);
    put(params, kThreadsBatch, options_.threads);
    if (logits) put(params, kFlashAttention, 0);  // else as the engine thinks best
    context_ = llama_init_from_model(model_, params);
    if (context_ == nullptr) throw std::runtime_error("cannot make a context");
    sequences_ = sequences;
    return true;
  }

  int random_id() {  // xorshift64
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return static_cast<int>(random_ % static_cast<std::uint64_t>(options_.vocab));
  }

  void add(int token, int pos, int seq, bool logits) {
    const int i = batch_.n_tokens++;
    batch_.token[i] = token;
    batch_.pos[i] = pos;
    batch_.n_seq_id[i] = 1;
    batch_.seq_id[i][0] = seq;
    batch_.logits[i] = logits;
  }

  void decode() {
    if (const int code = llama_decode(context_, batch_); code != 0) {
      throw std::runtime_error("llama_decode: " + std::to_string(code));
    }
  }

  // A prompt of `tokens` random ids; only its last row gets logits.
  void fill(int tokens, int seq) {
    if (seq == 0) llama_memory_clear(llama_get_memory(context_), true);
    for (int done = 0; done < tokens;) {
      batch_.n_tokens = 0;
      const int end = std::min(tokens, done + kBatchTokens);
      for (; done < end; ++done) add(random_id(), done, seq, done + 1 == tokens);
      decode();
    }
  }

  Timing measure_prompt(const Measurement& m) {
    const double start = seconds_now(), processor = processor_seconds();
    fill(m.tokens, 0);
    llama_synchronize(context_);
    volatile float first = llama_get_logits_ith(context_, -1)[0];
    static_cast<void>(first);
    return {seconds_now() - start, processor_seconds() - processor, m.tokens};
  }

  // A long past is computed once and put back for later runs.
  void fill_to_depth(const Measurement& m) {
    if (m.sequences == 1 && m.depth >= 256) {
      std::vector<std::uint8_t>& saved = saved_[m.depth];
      if (!saved.empty()) {
        llama_memory_clear(llama_get_memory(context_), true);
        if (llama_state_seq_set_data(context_, saved.data(), saved.size(), 0) == 0) {
          throw std::runtime_error("cannot put a sequence back");
        }
        return;
      }
      fill(m.depth, 0);
      llama_synchronize(context_);
      saved.resize(llama_state_seq_get_size(context_, 0));
      llama_state_seq_get_data(context_, saved.data(), saved.size(), 0);
      return;
    }
    for (int s = 0; s < m.sequences; ++s) fill(m.depth, s);
    llama_synchronize(context_);
  }

  Timing measure_decode(const Measurement& m) {
    fill_to_depth(m);
    const double start = seconds_now(), processor = processor_seconds();
    for (int step = 0; step < m.tokens; ++step) {
      batch_.n_tokens = 0;
      for (int s = 0; s < m.sequences; ++s) add(random_id(), m.depth + step, s, true);
      decode();
      llama_synchronize(context_);
    }
    return {seconds_now() - start, processor_seconds() - processor, m.tokens * m.sequences};
  }

  const Options& options_;
  void* model_ = nullptr;
  void* context_ = nullptr;
  int sequences_ = 0;
  LlamaBatch batch_{};
  double load_seconds_ = 0;
  std::uint64_t random_ = 88172645463325252ull;
  std::map<int, std::vector<std::uint8_t>> saved_;  // by depth
};

std::string answer(Engine& engine, const std::string& name) {
  char text[512];
  if (name == "warm") {
    engine.warm();
    return "{\"name\":\"warm\"}";
  }
  if (name == "memory") {
    std::snprintf(text, sizeof text,
                  "{\"name\":\"memory\",\"peak_bytes\":%llu,\"own_bytes\":%llu,"
                  "\"mapped_bytes\":%llu}",
                  static_cast<unsigned long long>(status_bytes("VmHWM")),
                  static_cast<unsigned long long>(status_bytes("RssAnon")),
                  static_cast<unsigned long long>(status_bytes("RssFile")));
    return text;
  }
  const Timing t = engine.measure(parse_measurement(name));
  std::snprintf(text, sizeof text,
                "{\"name\":\"%s\",\"tokens_per_second\":%.6g,\"seconds\":%.6g,"
                "\"processor_seconds\":%.6g,\"tokens\":%d}",
                name.c_str(), t.tokens / t.seconds, t.seconds, t.processor, t.tokens);
  return text;
}

int serve(Engine& engine, const Options& options) {
  std::string info = llama_print_system_info();
  for (char& c : info) {
    if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  std::cout << "{\"name\":\"ready\",\"load_seconds\":" << engine.load_seconds()
            << ",\"threads\":" << options.threads << ",\"system\":\"" << info << "\"}" << std::endl;
  for (std::string name; std::getline(std::cin, name);) {
    std::cout << answer(engine, name) << std::endl;
  }
  return 0;
}

Options parse_options(int argc, char** argv) {
  Options o;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string key = argv[i], value = argv[i + 1];
    if (key == "--bins") o.bins = value;
    if (key == "--model") o.model = value;
    if (key == "--logits") o.logits = value;
    if (key == "--out") o.out = value;
    if (key == "--threads") o.threads = std::atoi(value.c_str());
    if (key == "--vocab") o.vocab = std::atoi(value.c_str());
  }
  if (o.bins.empty() || o.model.empty() || o.vocab <= 0 || o.threads <= 0) {
    throw std::runtime_error("use: --bins DIR --model FILE.gguf --vocab N [--threads N]");
  }
  return o;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options = parse_options(argc, argv);
    llama_log_set(log_errors, nullptr);
    ggml_backend_load_all_from_path(options.bins.c_str());
    llama_backend_init();
    Engine engine(options);
    if (options.logits.empty()) return serve(engine, options);
    std::ifstream in(options.logits);
    std::vector<int> ids;
    for (int id = 0; in >> id;) ids.push_back(id);
    engine.write_logits(ids, options.out);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "llama_peer_driver: %s\n", e.what());
    return 1;
  }
}
