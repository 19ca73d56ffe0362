// Where a pass spends its time, by operator family, with the bytes and operations that it needed.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace triax {

enum class Family : std::uint8_t {
  embedding,
  depth_mix,
  norms,            // layer norms and residual sums
  kda_projections,  // q, k, v, decay, write strength, gate, output
  kda_recurrence,   // convolution, normalisation, decay, state, output norm
  mla_projections,
  mla_attention,  // the compressed cache, scores, softmax
  dense_mlp,
  shared_experts,
  router,
  latent,  // down and up projections of the latent space, its norm
  routed_experts,
  lm_head,
  sampling,
  other,  // between the families: batching, growth of states, the caller's own work
};
inline constexpr std::size_t kFamilies = 15;
std::string_view family_name(Family family);  // "kda_projections", ...

// A clock that always runs for exactly one family, so that the families' times add up to the whole.
// Used by the thread that drives the passes.
class Profile {
 public:
  struct Entry {
    double seconds = 0;
    std::uint64_t bytes = 0;       // weights, states and caches that had to be read or written
    std::uint64_t operations = 0;  // multiplications and additions of products
  };

  // Counting begins, in Family::other. What was counted before stays.
  void start();
  void stop();
  // The clock goes on for `family`; returns the one before.
  Family enter(Family family);
  // Adds to the family at hand.
  void count(std::uint64_t bytes, std::uint64_t operations) {
    entry(current_).bytes += bytes;
    entry(current_).operations += operations;
  }

  const Entry& operator[](Family family) const {
    return entries_[static_cast<std::size_t>(family)];
  }
  Entry total() const;

 private:
  using Clock = std::chrono::steady_clock;
  Entry& entry(Family family) { return entries_[static_cast<std::size_t>(family)]; }
  void charge();

  std::array<Entry, kFamilies> entries_ = {};
  Family current_ = Family::other;
  Clock::time_point since_ = {};
  bool running_ = false;
};

// The family of what happens while it lives; nested scopes are charged to the inner one. Nothing
// when `profile` is null.
class ProfileScope {
 public:
  ProfileScope(Profile* profile, Family family)
      : profile_(profile), before_(profile == nullptr ? family : profile->enter(family)) {}
  ~ProfileScope() {
    if (profile_ != nullptr) profile_->enter(before_);
  }
  ProfileScope(const ProfileScope&) = delete;
  ProfileScope& operator=(const ProfileScope&) = delete;

 private:
  Profile* profile_;
  Family before_;
};

}  // namespace triax
