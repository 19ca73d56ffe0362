// Dense BF16 products beside oneDNN's, one thread, weights as they are stored ([N, K], no packing
// outside the timed region): `--benchmark_filter='^dense_bf16'`.
#include <benchmark/benchmark.h>

#include <dnnl.hpp>
#include <vector>

#include "onednn_bench.h"
#include "triax/core/arena.h"
#include "triax/core/buffer.h"
#include "triax/core/context.h"
#include "triax/core/rng.h"
#include "triax/ops/linear.h"

namespace triax::bench {
namespace {

using benchmark::Counter;
using benchmark::State;

// Matrices of one to sixteen rows must come from memory, as in decoding: many in turn.
std::size_t copies_for(std::size_t M, std::size_t bytes) {
  return M > 16 ? 1 : (std::size_t{1200} << 20) / bytes + 1;
}

Buffer<bf16> numbers(std::size_t n) {
  Buffer<bf16> out(n);
  for (std::size_t i = 0; i < n; ++i) {
    out[i].bits = static_cast<std::uint16_t>(0x3C00u | (splitmix64_at(3, i) & 0x80FFu));
  }
  return out;
}

void set_counters(State& state, std::size_t M, std::size_t N, std::size_t K) {
  const auto each = [](double x) {
    return Counter(x * 1e-9, Counter::kIsIterationInvariantRate, Counter::kIs1000);
  };
  state.counters["GFLOP/s"] = each(2.0 * static_cast<double>(M * N * K));
  state.counters["GB/s"] = each(2.0 * static_cast<double>(N * K));
}

void ours(State& state) {
  const auto M = static_cast<std::size_t>(state.range(0));
  const auto N = static_cast<std::size_t>(state.range(1));
  const auto K = static_cast<std::size_t>(state.range(2));
  const std::size_t copies = copies_for(M, 2 * N * K);
  const Buffer<bf16> w = numbers(N * K * copies);
  Buffer<float> x(M * K), y(M * N);
  for (std::size_t i = 0; i < M * K; ++i) x[i] = to_float(w[i]);
  ThreadPool pool(1);
  Arena arena;
  Context ctx{pool, arena};
  std::size_t turn = 0;
  for (auto _ : state) {
    const MatrixView view{w.data() + turn++ % copies * N * K, DType::BF16, N, K};
    ops::linear(ctx, Mat<const float>(x.data(), {M, K}), view, Mat<float>(y.data(), {M, N}));
    benchmark::ClobberMemory();
  }
  set_counters(state, M, N, K);
}

void theirs(State& state) {
  using dnnl::memory;
  const auto M = state.range(0), N = state.range(1), K = state.range(2);
  const auto weights = static_cast<std::size_t>(N * K);
  const std::size_t copies = copies_for(static_cast<std::size_t>(M), 2 * weights);
  Buffer<bf16> w = numbers(weights * copies);
  Buffer<bf16> x = numbers(static_cast<std::size_t>(M * K));
  Buffer<float> y(static_cast<std::size_t>(M * N));
  dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const memory::desc xd({M, K}, memory::data_type::bf16, memory::format_tag::ab);
  const memory::desc wd({K, N}, memory::data_type::bf16, memory::format_tag::ba);
  const memory::desc yd({M, N}, memory::data_type::f32, memory::format_tag::ab);
  const dnnl::matmul product(dnnl::matmul::primitive_desc(dnnl::matmul::desc(xd, wd, yd), engine));
  memory xm(xd, engine, x.data()), ym(yd, engine, y.data());
  std::vector<memory> wm;
  for (std::size_t i = 0; i < copies; ++i) wm.emplace_back(wd, engine, w.data() + i * weights);
  std::size_t turn = 0;
  for (auto _ : state) {
    product.execute(
        stream, {{DNNL_ARG_SRC, xm}, {DNNL_ARG_WEIGHTS, wm[turn++ % copies]}, {DNNL_ARG_DST, ym}});
    stream.wait();
  }
  set_counters(state, static_cast<std::size_t>(M), static_cast<std::size_t>(N),
               static_cast<std::size_t>(K));
}

}  // namespace

void register_onednn() {
  struct Size {
    long N, K;
  };
  for (const Size size : {Size{2048, 2048}, Size{3584, 7168}}) {
    for (const long M : {1, 4, 16, 64, 512}) {
      benchmark::RegisterBenchmark("dense_bf16/triax", ours)->Args({M, size.N, size.K});
      benchmark::RegisterBenchmark("dense_bf16/onednn", theirs)->Args({M, size.N, size.K});
    }
  }
}

}  // namespace triax::bench
