// Each kernel under each instruction set, on one core, in the shapes that K3 uses. Counters:
// GFLOP/s of products, GB/s of what must be read (and written). Hold them against Limit/*.
#include <benchmark/benchmark.h>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "onednn_bench.h"
#include "triax/core/buffer.h"
#include "triax/core/rng.h"
#include "triax/core/thread_pool.h"
#include "triax/kernels/kernels.h"
#include "triax/machine/limits.h"

namespace triax::bench {
namespace {

using benchmark::Counter;
using benchmark::State;

void set_counters(State& state, double flop, double bytes) {
  const auto each = [](double x) {
    return Counter(x * 1e-9, Counter::kIsIterationInvariantRate, Counter::kIs1000);
  };
  if (flop > 0) state.counters["GFLOP/s"] = each(flop);
  if (bytes > 0) state.counters["GB/s"] = each(bytes);
}

Buffer<float> floats(std::size_t n, float span = 1.0f) {
  Buffer<float> out(n);
  Rng rng(n);
  for (float& v : out.span()) v = span * static_cast<float>(2.0 * rng.uniform() - 1.0);
  return out;
}

Buffer<bf16> halves(std::size_t n) {
  Buffer<bf16> out(n);
  for (std::size_t i = 0; i < n; ++i) {
    out[i].bits = static_cast<std::uint16_t>(0x3F00u | (splitmix64_at(3, i) & 0x80FFu));
  }
  return out;
}

// Reads of M = 1 must come from memory: many matrices in turn, more than the caches hold.
std::size_t copies_for(std::size_t M, std::size_t bytes) {
  constexpr std::size_t kBeyondCaches = std::size_t{1200} << 20;
  return M > 8 ? 1 : kBeyondCaches / bytes + 1;
}

template <class X, class W, class Run>
void dense(State& state, const Buffer<X>& x, Buffer<W> (*make)(std::size_t), std::size_t M,
           std::size_t N, std::size_t K, Run run) {
  const std::size_t copies = copies_for(M, N * K * sizeof(W));
  const Buffer<W> w = make(N * K * copies);
  Buffer<float> y(M * N);
  std::size_t turn = 0;
  for (auto _ : state) {
    run(x.data(), w.data() + (turn++ % copies) * N * K, y.data());
    benchmark::ClobberMemory();
  }
  set_counters(state, 2.0 * static_cast<double>(M * N * K), static_cast<double>(N * K * sizeof(W)));
}

Buffer<float> unit_floats(std::size_t n) {
  return floats(n);
}

void linear_bf16_bf16(State& state, const KernelTable& t) {
  const std::size_t M = state.range(0), N = state.range(1), K = state.range(2);
  dense<bf16, bf16>(state, halves(M * K), halves, M, N, K,
                    [&](const bf16* x, const bf16* w, float* y) {
                      t.linear_bf16_bf16(x, K, M, w, K, N, K, y, N);
                    });
}
void linear_f32_bf16(State& state, const KernelTable& t) {
  const std::size_t M = state.range(0), N = state.range(1), K = state.range(2);
  dense<float, bf16>(state, floats(M * K), halves, M, N, K,
                     [&](const float* x, const bf16* w, float* y) {
                       t.linear_f32_bf16(x, K, M, w, K, N, K, y, N);
                     });
}
void linear_f32_f32(State& state, const KernelTable& t) {
  const std::size_t M = state.range(0), N = state.range(1), K = state.range(2);
  dense<float, float>(state, floats(M * K), unit_floats, M, N, K,
                      [&](const float* x, const float* w, float* y) {
                        t.linear_f32_f32(x, K, M, w, K, N, K, y, N);
                      });
}

template <class X>
void linear_mxfp4(State& state, const KernelTable& t) {
  const std::size_t M = state.range(0), N = state.range(1), K = state.range(2);
  const std::size_t copies = copies_for(M, N * K / 2);
  Buffer<std::uint8_t> packed(copies * N * K / 2), scale(copies * N * K / 32);
  for (std::size_t i = 0; i < packed.size(); ++i) {
    packed[i] = static_cast<std::uint8_t>(splitmix64_at(5, i));
  }
  for (std::size_t i = 0; i < scale.size(); ++i) {
    scale[i] = static_cast<std::uint8_t>(118 + splitmix64_at(6, i) % 8);
  }
  const Buffer<float> xf = floats(M * K);
  const Buffer<bf16> xb = halves(M * K);
  Buffer<float> y(M * N), scratch(kMxfp4RowTile * K);
  std::size_t turn = 0;
  for (auto _ : state) {
    const std::size_t at = turn++ % copies;
    const std::uint8_t* p = packed.data() + at * N * K / 2;
    const std::uint8_t* s = scale.data() + at * N * K / 32;
    if constexpr (std::is_same_v<X, bf16>) {
      t.linear_bf16_mxfp4(xb.data(), K, M, p, s, N, K, y.data(), N, scratch.data());
    } else {
      t.linear_f32_mxfp4(xf.data(), K, M, p, s, N, K, y.data(), N, scratch.data());
    }
    benchmark::ClobberMemory();
  }
  set_counters(state, 2.0 * static_cast<double>(M * N * K),
               static_cast<double>(N * K / 2 + N * K / 32));
}

using Gemm = decltype(KernelTable::gemm_nn);
void gemm(State& state, Gemm f) {
  const std::size_t M = state.range(0), N = state.range(1), K = state.range(2);
  const auto big = std::max({M, N, K});
  const auto a = floats(big * big), b = floats(big * big);
  Buffer<float> c(M * N);
  for (auto _ : state) {
    f(a.data(), big, b.data(), big, c.data(), N, M, N, K, false);
    benchmark::ClobberMemory();
  }
  set_counters(state, 2.0 * static_cast<double>(M * N * K), 0);
}

// A kernel over a row of n that fits the first cache; bytes counts what it reads and writes.
template <class Run>
void row(State& state, std::size_t bytes_each, Run run) {
  const std::size_t n = state.range(0);
  const auto a = floats(n, 4.0f), b = floats(n, 4.0f), c = floats(n);
  Buffer<float> y(n);
  for (auto _ : state) {
    run(a.data(), b.data(), c.data(), n, y.data());
    benchmark::ClobberMemory();
  }
  set_counters(state, 0, static_cast<double>(n * bytes_each));
  state.counters["G/s"] =
      Counter(static_cast<double>(n) * 1e-9, Counter::kIsIterationInvariantRate);
}

void kda_step(State& state, const KernelTable& t) {
  constexpr std::size_t K = 128, V = 128, heads = 96;
  auto S = floats(heads * K * V);
  const auto q = floats(K, 0.1f), k = floats(K, 0.1f), v = floats(V);
  Buffer<float> g(K), o(V), scratch(K + V);
  for (float& x : g.span()) x = -0.01f;
  for (auto _ : state) {
    for (std::size_t h = 0; h < heads; ++h) {
      t.kda_step(S.data() + h * K * V, q.data(), k.data(), v.data(), g.data(), 0.5f, K, V, o.data(),
                 scratch.data());
    }
    benchmark::ClobberMemory();
  }
  set_counters(state, 7.0 * heads * K * V, 2.0 * heads * K * V * sizeof(float));
}

template <class F>
auto* add_bench(const std::string& kernel, const KernelTable& t, F f) {
  return benchmark::RegisterBenchmark((kernel + "/" + t.name).c_str(), f);
}

void register_products(const KernelTable& t) {
  // prompts, small batches and single tokens: trunk projections and experts
  const auto shapes = [](auto* b) {
    b->Args({512, 2048, 2048})
        ->Args({64, 3072, 3584})
        ->Args({16, 3072, 3584})
        ->Args({8, 3072, 3584});
    b->Args({4, 3072, 3584})->Args({2, 3072, 3584})->Args({1, 3072, 3584});
  };
  shapes(add_bench("linear_bf16_bf16", t, [&t](State& s) { linear_bf16_bf16(s, t); }));
  shapes(add_bench("linear_f32_bf16", t, [&t](State& s) { linear_f32_bf16(s, t); }));
  shapes(add_bench("linear_f32_f32", t, [&t](State& s) { linear_f32_f32(s, t); }));
  shapes(add_bench("linear_bf16_mxfp4", t, [&t](State& s) { linear_mxfp4<bf16>(s, t); }));
  shapes(add_bench("linear_f32_mxfp4", t, [&t](State& s) { linear_mxfp4<float>(s, t); }));
  const auto small = [](auto* b) {
    b->Args({64, 64, 128})->Args({16, 128, 128})->Args({64, 128, 64})->Args({16, 16, 128});
    b->Args({128, 128, 64});
  };
  small(add_bench("gemm_nt", t, [&t](State& s) { gemm(s, t.gemm_nt); }));
  small(add_bench("gemm_nn", t, [&t](State& s) { gemm(s, t.gemm_nn); }));
  small(add_bench("gemm_tn", t, [&t](State& s) { gemm(s, t.gemm_tn); }));
}

void register_rows(const KernelTable& t) {
  const auto add = [&t](const char* name, std::size_t bytes, auto run) {
    add_bench(name, t, [bytes, run](State& s) { row(s, bytes, run); })->Arg(3072);
  };
  using P = const float*;
  add("exp", 8, [&t](P a, P, P, std::size_t n, float* y) { t.exp(a, n, y); });
  add("sigmoid", 8, [&t](P a, P, P, std::size_t n, float* y) { t.sigmoid(a, n, y); });
  add("situ", 12, [&t](P a, P b, P, std::size_t n, float* y) { t.situ(a, b, 4.0f, 25.0f, n, y); });
  add("swiglu", 12, [&t](P a, P b, P, std::size_t n, float* y) { t.swiglu(a, b, n, y); });
  add("rms_norm", 12,
      [&t](P a, P, P c, std::size_t n, float* y) { t.rms_norm(a, c, 1e-5f, n, y); });
  add("dot", 8, [&t](P a, P b, P, std::size_t n, float* y) { *y = t.dot(a, b, n); });
  add("exp_sum", 8, [&t](P a, P, P, std::size_t n, float* y) {
    benchmark::DoNotOptimize(t.exp_sum(a, 4.0f, n, y));
  });
  add("to_bf16", 6,
      [&t](P a, P, P, std::size_t n, float* y) { t.to_bf16(a, n, reinterpret_cast<bf16*>(y)); });
  add("kda_gate", 12,
      [&t](P a, P b, P, std::size_t n, float* y) { t.kda_gate(a, b, 1.2f, -5.0f, n, y); });
  add_bench("kda_step", t, [&t](State& s) { kda_step(s, t); });
}

void register_limits() {
  const LimitLoops* reader = nullptr;
  for (int i = 0; i < kIsaCount; ++i) {
    if (!isa_available(static_cast<Isa>(i))) continue;
    const LimitLoops& loops = limit_loops(static_cast<Isa>(i));
    if (loops.read != nullptr) reader = &loops;
    const std::string name = fmt::format("Limit/{}", loops.name);
    benchmark::RegisterBenchmark(name.c_str(), [&loops](State& s) {
      double flop = 0;
      for (auto _ : s) flop = loops.multiply_add(10000);
      set_counters(s, flop, 0);
    });
  }
  for (const std::size_t threads : {1, 2}) {
    const std::string name = fmt::format("Limit/read/{}_threads", threads);
    benchmark::RegisterBenchmark(name.c_str(), [threads, reader](State& s) {
      const std::size_t n = std::size_t{1200} << 20;
      const Buffer<char> p(n * threads);
      ThreadPool pool(threads);
      for (auto _ : s) {
        pool.parallel_for(threads, [&](std::size_t t, std::size_t) {
          benchmark::DoNotOptimize(reader->read(p.data() + t * n, n));
        });
      }
      set_counters(s, 0, static_cast<double>(n * threads));
    })->UseRealTime();
  }
}

// ---- The matrix unit, where there is one -------------------------------------------------------

// Rows of x as the unit takes them; packing counts as part of a product.
class PackedInput {
 public:
  PackedInput(std::size_t M, std::size_t K)
      : M_(M), K_(K), x_(floats(M * K)), packed_(packed_size(M, K)) {
    for (std::size_t m = 0; m < M; ++m) rows_.push_back(x_.data() + m * K);
  }
  void pack(const KernelTable& t, ColumnOrder order) {
    if (M_ == 1) {
      t.matrix->pack_row(x_.data(), K_, packed_.data(), order);
    } else {
      t.matrix->pack(rows_.data(), M_, K_, packed_.data(), K_, order);
    }
  }
  PackedRows rows(std::size_t m, std::size_t count) const {
    return {packed_.data() + m * K_, count, M_ == 1};
  }

 private:
  std::size_t M_, K_;
  Buffer<float> x_;
  Buffer<bf16> packed_;
  std::vector<const float*> rows_;
};

// Whole products in blocks of 256 rows and 128 columns, as ops/linear.cc cuts them. product(rows of
// x, copy of the weights, first column, columns, y)
template <class Product>
void matrix_product(State& state, std::size_t M, std::size_t N, std::size_t K, std::size_t bytes,
                    Product product, ColumnOrder order = ColumnOrder::plain) {
  const KernelTable& t = kernel_table(Isa::amx);
  PackedInput x(M, K);
  Buffer<float> y(M * N);
  const std::size_t copies = copies_for(M, bytes);
  std::size_t turn = 0;
  for (auto _ : state) {
    x.pack(t, order);
    const std::size_t copy = turn++ % copies;
    for (std::size_t m = 0; m < M; m += 256) {
      for (std::size_t n = 0; n < N; n += 128) {
        product(x.rows(m, std::min<std::size_t>(256, M - m)), copy, n,
                std::min<std::size_t>(128, N - n), y.data() + m * N + n);
      }
    }
    benchmark::ClobberMemory();
  }
  set_counters(state, 2.0 * static_cast<double>(M * N * K), static_cast<double>(bytes));
}

void matrix_bf16(State& state) {
  const std::size_t M = state.range(0), N = state.range(1), K = state.range(2);
  const Buffer<bf16> w = halves(N * K * copies_for(M, N * K * 2));
  Buffer<float> scratch(matrix_scratch(K));
  matrix_product(
      state, M, N, K, N * K * 2,
      [&](const PackedRows& x, std::size_t copy, std::size_t n, std::size_t columns, float* y) {
        kernel_table(Isa::amx).matrix->product_bf16(x, w.data() + (copy * N + n) * K, K, columns, K,
                                                    y, N, scratch.data());
      });
}

void matrix_mxfp4(State& state) {
  const std::size_t M = state.range(0), N = state.range(1), K = state.range(2);
  const std::size_t copies = copies_for(M, N * K / 2);
  Buffer<std::uint8_t> w(copies * N * K / 2), scale(copies * N * K / 32);
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = static_cast<std::uint8_t>(splitmix64_at(5, i));
  for (std::size_t i = 0; i < scale.size(); ++i) {
    scale[i] = static_cast<std::uint8_t>(118 + splitmix64_at(6, i) % 8);
  }
  Buffer<float> scratch(matrix_scratch(K));
  matrix_product(
      state, M, N, K, N * K / 32 * 17,
      [&](const PackedRows& x, std::size_t copy, std::size_t n, std::size_t columns, float* y) {
        const std::size_t row = copy % copies * N + n;
        kernel_table(Isa::amx).matrix->product_mxfp4(x, w.data() + row * (K / 2),
                                                     scale.data() + row * (K / 32), columns, K, y,
                                                     N, scratch.data(), nullptr, nullptr);
      },
      ColumnOrder::mxfp4);
}

void matrix_int8(State& state) {
  const std::size_t M = state.range(0), N = state.range(1), K = state.range(2);
  const std::size_t copies = copies_for(M, N * K);
  Buffer<std::int8_t> w(copies * N * K);
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = static_cast<std::int8_t>(splitmix64_at(7, i));
  const Buffer<bf16> scale = halves(copies * N * K / 32);
  Buffer<float> scratch(matrix_scratch(K));
  matrix_product(
      state, M, N, K, N * K / 32 * 34,
      [&](const PackedRows& x, std::size_t copy, std::size_t n, std::size_t columns, float* y) {
        const std::size_t row = copy % copies * N + n;
        kernel_table(Isa::amx).matrix->product_int8(
            x, w.data() + row * K, scale.data() + row * (K / 32), columns, K, y, N, scratch.data());
      });
}

void register_matrix() {
  if (!isa_available(Isa::amx)) return;
  for (const long M : {1, 4, 16, 32, 64, 256, 512}) {
    benchmark::RegisterBenchmark("matrix_bf16", matrix_bf16)->Args({M, 2048, 2048});
  }
  for (const long M : {1, 4, 16, 64, 512}) {
    benchmark::RegisterBenchmark("matrix_bf16", matrix_bf16)->Args({M, 3584, 7168});
  }
  // An expert of the bench shape: from memory at 1 to 8 rows, in the second cache beyond.
  for (const long M : {1, 4, 8, 16, 32, 48, 64, 256}) {
    benchmark::RegisterBenchmark("matrix_mxfp4", matrix_mxfp4)->Args({M, 896, 1024});
    benchmark::RegisterBenchmark("matrix_int8", matrix_int8)->Args({M, 896, 1024});
  }
}

}  // namespace
}  // namespace triax::bench

int main(int argc, char** argv) {
  using namespace triax;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  bench::register_limits();
  bench::register_matrix();
#ifdef TRIAX_ONEDNN
  bench::register_onednn();
#endif
  for (int i = 0; i < kIsaCount; ++i) {
    if (!isa_available(static_cast<Isa>(i))) continue;
    bench::register_products(kernel_table(static_cast<Isa>(i)));
    bench::register_rows(kernel_table(static_cast<Isa>(i)));
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
