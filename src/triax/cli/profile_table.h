// Where the time of some passes went, as a table and as JSON.
#pragma once

#include <array>
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "triax/core/profile.h"

namespace triax::cli {

// Passes that were measured together; what several profiles found can be added up.
struct Profiled {
  std::array<Profile::Entry, kFamilies> families = {};
  double seconds = 0;      // wall time
  std::size_t tokens = 0;  // over which bytes and operations are shared out

  Profiled() = default;
  Profiled(const Profile& profile, double wall_seconds, std::size_t token_count);
  Profiled& operator+=(const Profiled& other);
  const Profile::Entry& operator[](Family family) const {
    return families[static_cast<std::size_t>(family)];
  }
  Profile::Entry total() const;
};

// The part of the wall time that the operator families explain; what lies between them (Family::
// other) explains nothing. 0 without a measured time.
double explained_part(const Profiled& p);

// One line a family that took time or read bytes: milliseconds, share, megabytes, GB/s, MFLOP,
// GFLOP/s, amounts per token; then the sum, and a line with the explained part.
std::string profile_table(const Profiled& p);

// {"seconds", "explained", "tokens", "families": [{"name", "seconds", "share", "bytes",
// "operations"}]}: totals, not per token.
nlohmann::ordered_json profile_json(const Profiled& p);

}  // namespace triax::cli
