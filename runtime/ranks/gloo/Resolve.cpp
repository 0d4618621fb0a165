#include "runtime/ranks/gloo/Resolve.h"

#include <thread>

using namespace tcc;
using namespace tcc::runtime;
using asio::ip::tcp;

/// Between two questions to the name server.
static constexpr std::chrono::milliseconds kPause(200);

Result<tcp::resolver::results_type>
ranks::resolve(asio::io_context &io, const std::string &host, uint16_t port,
               std::chrono::steady_clock::time_point deadline) {
  tcp::resolver resolver(io);
  asio::error_code error;
  while (true) {
    auto places = resolver.resolve(host, std::to_string(port), error);
    if (!error)
      return places;
    if (std::chrono::steady_clock::now() + kPause >= deadline)
      return makeError(Code::Usage, "host '", host,
                       "' of the rendezvous: ", error.message());
    std::this_thread::sleep_for(kPause);
  }
}
