// A plain HTTP/1.1 client for `triax selftest --server`: one connection a request, no TLS.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace triax::cli {

struct HttpAnswer {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> fields;  // names in lower case
  std::string body;                                         // chunks joined

  std::string_view field(std::string_view name) const;  // empty where there is none
};

// Where a server is. `base` is what stands before "/v1".
struct ServerAddress {
  std::string host, port, base;

  // "http://127.0.0.1:8080", "http://host/base/v1", "[::1]:8080". Throws Error for https and for
  // what is no address.
  static ServerAddress parse(const std::string& url);
};

class HttpClient {
 public:
  HttpClient(ServerAddress address, std::string key, std::chrono::seconds timeout)
      : address_(std::move(address)), key_(std::move(key)), timeout_(timeout) {}

  // `path` begins with "/"; an empty key sends none. Throws Error when there is no answer in time
  // or none that is HTTP.
  HttpAnswer ask(const std::string& method, const std::string& path, const std::string& body) const;
  HttpAnswer ask(const std::string& method, const std::string& path, const std::string& body,
                 const std::string& key) const;
  const std::string& key() const { return key_; }

 private:
  ServerAddress address_;
  std::string key_;
  std::chrono::seconds timeout_;
};

}  // namespace triax::cli
