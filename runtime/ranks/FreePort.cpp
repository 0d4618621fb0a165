#include "runtime/ranks/FreePort.h"

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <unistd.h>

using namespace tcc;
using namespace tcc::runtime;

Result<uint16_t> runtime::findFreePort(const char *host) {
  int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in place = {};
  place.sin_family = AF_INET;
  inet_pton(AF_INET, host, &place.sin_addr);
  socklen_t size = sizeof(place);
  auto *address = reinterpret_cast<sockaddr *>(&place);
  bool isFound = probe >= 0 && bind(probe, address, size) == 0 &&
                 getsockname(probe, address, &size) == 0;
  int error = errno;
  if (probe >= 0)
    close(probe);
  if (!isFound)
    return makeError(Code::Io, "no port of ", host,
                     " is free: ", std::strerror(error));
  return ntohs(place.sin_port);
}
