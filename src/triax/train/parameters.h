// All trainable numbers of a model in one array: weights, gradients and optimiser state have the
// same layout, made from the tensor table.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "triax/config/config.h"
#include "triax/core/buffer.h"
#include "triax/ops/backward/moe.h"
#include "triax/weights/tensor_table.h"
#include "triax/weights/weights.h"

namespace triax {
class Checkpoint;
}

namespace triax::train {

// Where each tensor lies. A routed expert's matrix is one tensor ("...experts.7.w1.weight"), its
// packed form is only made on export. A layout does not move: views refer to it.
class ParameterLayout {
 public:
  struct Tensor {
    TensorId id;
    std::string name;                // without a root; ".weight" for experts
    std::vector<std::size_t> shape;  // as in the file; of an expert's matrix [rows, columns]
    std::size_t offset = 0, size = 0;

    std::size_t rows() const { return shape.size() < 2 ? 1 : shape[0]; }
    std::size_t cols() const { return size / rows(); }
  };

  explicit ParameterLayout(const K3Config& config);
  ParameterLayout(const ParameterLayout&) = delete;
  ParameterLayout& operator=(const ParameterLayout&) = delete;

  const K3Config& config() const { return config_; }
  std::span<const Tensor> tensors() const { return tensors_; }
  std::size_t size() const { return size_; }  // numbers, with the gaps of alignment
  // Members of this structure, empty themselves, are the names by which tensors are asked for:
  // parameters.matrix(layout.names().layers[3].kda.q_proj).
  const K3Weights& names() const { return names_; }
  const Tensor& of(const void* name) const;
  // Matrix `which` (0: w1, 1: w2, 2: w3) of a routed expert.
  const Tensor& expert(std::size_t layer, std::size_t expert, std::size_t which) const;

 private:
  K3Config config_;
  std::vector<Tensor> tensors_;
  std::size_t size_ = 0;
  K3Weights names_;
  std::unordered_map<const void*, std::size_t> by_name_;
  std::vector<std::size_t> first_expert_;  // [layers], index of expert 0's w1
};

// Numbers in that layout, zero at the start.
template <class F>
class Parameters {
 public:
  explicit Parameters(const ParameterLayout& layout) : layout_(&layout), data_(layout.size()) {}

  const ParameterLayout& layout() const { return *layout_; }
  std::span<F> all() { return data_.span(); }
  std::span<const F> all() const { return data_.span(); }
  std::span<F> operator[](const ParameterLayout::Tensor& t) {
    return data_.span().subspan(t.offset, t.size);
  }
  std::span<const F> operator[](const ParameterLayout::Tensor& t) const {
    return data_.span().subspan(t.offset, t.size);
  }
  Mat<F> matrix(const MatrixView& name) { return as_matrix(layout_->of(&name)); }
  Mat<const F> matrix(const MatrixView& name) const { return as_matrix(layout_->of(&name)); }
  Vec<F> vector(const std::vector<float>& name) { return (*this)[layout_->of(&name)]; }
  Vec<const F> vector(const std::vector<float>& name) const { return (*this)[layout_->of(&name)]; }
  Mat<F> as_matrix(const ParameterLayout::Tensor& t) {
    return Mat<F>(data_.data() + t.offset, {t.rows(), t.cols()});
  }
  Mat<const F> as_matrix(const ParameterLayout::Tensor& t) const {
    return Mat<const F>(data_.data() + t.offset, {t.rows(), t.cols()});
  }
  // All experts of a layer, in order.
  std::vector<ops::ExpertMatrices<F>> experts(std::size_t layer) {
    return experts_of<F>(*this, layer);
  }
  std::vector<ops::ExpertMatrices<const F>> experts(std::size_t layer) const {
    return experts_of<const F>(*this, layer);
  }

 private:
  template <class G, class Self>
  static std::vector<ops::ExpertMatrices<G>> experts_of(Self& self, std::size_t layer) {
    std::vector<ops::ExpertMatrices<G>> out;
    const ParameterLayout& l = *self.layout_;
    for (std::size_t e = 0; e < l.config().num_experts; ++e) {
      out.push_back({self.as_matrix(l.expert(layer, e, 0)), self.as_matrix(l.expert(layer, e, 1)),
                     self.as_matrix(l.expert(layer, e, 2))});
    }
    return out;
  }
  const ParameterLayout* layout_;
  Buffer<F> data_;
};

// Fills `out` from a checkpoint of the layout's configuration: BF16 and float32 tensors widened,
// MXFP4 experts decoded, all exact. Throws Error as check_tensors() does.
template <class F>
void load_parameters(const Checkpoint& checkpoint, Parameters<F>& out);

}  // namespace triax::train
