// Numbers as people read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace triax::cli {

std::string grouped(std::uint64_t n);         // 1234567 -> "1,234,567"
std::string human_bytes(std::uint64_t n);     // "512 B", "1.5 GB" (powers of ten)
std::string human_seconds(double seconds);    // "0.42 s", "3:05", "2:10:00"
std::string human_rate(double per_second);    // three digits: "0.0421", "3.14", "1,250"
std::string one_line(std::string_view text);  // control characters as \n, \t, \xNN

}  // namespace triax::cli
