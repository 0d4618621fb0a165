#include "runtime/ranks/Connection.h"

#include <algorithm>
#include <arpa/inet.h>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <span>
#include <sys/socket.h>
#include <type_traits>
#include <unistd.h>

using namespace tcc;
using namespace tcc::runtime;
using Clock = Connection::Clock;

// No byte of it is left to chance.
static_assert(std::is_trivially_copyable_v<Message> &&
              std::has_unique_object_representations_v<Message>);

void File::close() {
  if (number >= 0)
    ::close(std::exchange(number, -1));
}

//===----------------------------------------------------------------------===//
// What others sent
//===----------------------------------------------------------------------===//

static bool isValid(const Sighting &sighting) {
  const CollectiveCall &last = sighting.position.last;
  return hasEnd(sighting.host) && hasEnd(last.of) && isDType(last.dtype) &&
         last.kind <= kLastCollectiveKind;
}

bool Message::isValid() const {
  return magic == kMagic && kind <= Kind::Goodbye && ::isValid(own) &&
         ::isValid(loss.who) && loss.cause <= kLastCause && hasEnd(loss.why);
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

static Result<Addresses> resolve(const std::string &host, uint16_t port) {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  int error =
      getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0)
    return makeError(Code::Peer, "host '", host, "': ", gai_strerror(error));
  return Addresses(found, freeaddrinfo);
}

static bool isLoopback(const sockaddr &address) {
  if (address.sa_family == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in &>(address)
                     .sin_addr.s_addr) >>
               24 ==
           IN_LOOPBACKNET;
  return address.sa_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(
             &reinterpret_cast<const sockaddr_in6 &>(address).sin6_addr);
}

static bool isLinkLocal(const sockaddr &address) {
  return address.sa_family == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(
             &reinterpret_cast<const sockaddr_in6 &>(address).sin6_addr);
}

std::string runtime::listOwnAddresses() {
  ifaddrs *all = nullptr;
  if (getifaddrs(&all) != 0)
    return "127.0.0.1";
  std::string own, others;
  for (const ifaddrs *one = all; one; one = one->ifa_next) {
    char text[NI_MAXHOST];
    if (!one->ifa_addr || !(one->ifa_flags & IFF_UP) ||
        isLinkLocal(*one->ifa_addr))
      continue;
    int family = one->ifa_addr->sa_family;
    socklen_t size =
        family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if ((family != AF_INET && family != AF_INET6) ||
        getnameinfo(one->ifa_addr, size, text, sizeof(text), nullptr, 0,
                    NI_NUMERICHOST) != 0)
      continue;
    std::string &list = isLoopback(*one->ifa_addr) ? own : others;
    list += concat(list.empty() ? "" : " ", text);
  }
  freeifaddrs(all);
  return own.empty() || others.empty() ? own + others : own + " " + others;
}

//===----------------------------------------------------------------------===//
// Listener
//===----------------------------------------------------------------------===//

static File openSocket(int family) {
  return File(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

/// All addresses of a family; of IPv6 those of IPv4, too.
static bool listenAtAll(const File &socket, int family) {
  sockaddr_in6 six = {};
  six.sin6_family = AF_INET6;
  six.sin6_addr = in6addr_any;
  sockaddr_in four = {};
  four.sin_family = AF_INET;
  int no = 0;
  if (family == AF_INET6)
    setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
  auto *place = family == AF_INET6 ? reinterpret_cast<sockaddr *>(&six)
                                   : reinterpret_cast<sockaddr *>(&four);
  socklen_t size = family == AF_INET6 ? sizeof(six) : sizeof(four);
  return bind(socket.get(), place, size) == 0 &&
         listen(socket.get(), SOMAXCONN) == 0;
}

Result<Listener> Listener::open(const std::string &host) {
  Listener listener;
  auto attempt = [&](int family, const addrinfo *loopback) {
    listener.socket = openSocket(family);
    return loopback ? bind(listener.file(), loopback->ai_addr,
                           loopback->ai_addrlen) == 0 &&
                          listen(listener.file(), SOMAXCONN) == 0
                    : listenAtAll(listener.socket, family);
  };
  bool isDone = false;
  if (host.empty()) {
    isDone = attempt(AF_INET6, nullptr) || attempt(AF_INET, nullptr);
  } else {
    Result<Addresses> found = resolve(host, 0);
    if (!found.ok())
      return found.takeStatus();
    const addrinfo *first = found->get();
    isDone = attempt(first->ai_family,
                     isLoopback(*first->ai_addr) ? first : nullptr);
  }
  if (!isDone)
    return makeError(Code::Peer,
                     "rank 0 cannot listen: ", std::strerror(errno));
  return listener;
}

uint16_t Listener::port() const {
  sockaddr_storage place = {};
  socklen_t size = sizeof(place);
  getsockname(file(), reinterpret_cast<sockaddr *>(&place), &size);
  return ntohs(place.ss_family == AF_INET6
                   ? reinterpret_cast<sockaddr_in6 &>(place).sin6_port
                   : reinterpret_cast<sockaddr_in &>(place).sin_port);
}

/// One that came and went again is nobody.
Listener::Found Listener::accept(Connection &come) {
  File socket(
      ::accept4(file(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  bool lacksFile =
      errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
  if (!socket.isOpen())
    return lacksFile ? Found::NoFile : Found::Nobody;
  come = Connection(std::move(socket));
  return Found::Connection;
}

//===----------------------------------------------------------------------===//
// Connection
//===----------------------------------------------------------------------===//

/// Waits for what `events` names, or an error; false at the deadline.
static bool waitFor(int file, short events, Clock::time_point deadline) {
  pollfd polled = {file, events, 0};
  while (true) {
    auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    int count = poll(&polled, 1, int(std::max<int64_t>(0, left.count())));
    if (count > 0)
      return true;
    if (count == 0 || errno != EINTR)
      return false;
  }
}

/// Zero, or the error.
static int connectTo(const File &socket, const addrinfo &place,
                     Clock::time_point deadline) {
  if (connect(socket.get(), place.ai_addr, place.ai_addrlen) == 0)
    return 0;
  if (errno != EINPROGRESS)
    return errno;
  if (!waitFor(socket.get(), POLLOUT, deadline))
    return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

Connection::Connection(File given) : socket(std::move(given)) {
  int yes = 1;
  if (socket.isOpen())
    setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

Result<Connection> Connection::open(const std::string &host, uint16_t port,
                                    Clock::time_point deadline) {
  Result<Addresses> found = resolve(host, port);
  if (!found.ok())
    return found.takeStatus();
  int error = 0;
  for (const addrinfo *place = found->get(); place; place = place->ai_next) {
    File socket = openSocket(place->ai_family);
    error = socket.isOpen() ? connectTo(socket, *place, deadline) : errno;
    if (error == 0)
      return Connection(std::move(socket));
  }
  return makeError(Code::Peer, host, ":", port, ": ", std::strerror(error));
}

void Connection::send(const Message &message) {
  auto bytes = std::as_bytes(std::span(&message, 1));
  unsent.insert(unsent.end(), bytes.begin(), bytes.end());
  flush();
}

void Connection::flush() {
  while (isOpen() && !unsent.empty()) {
    ssize_t count = ::send(file(), unsent.data(), unsent.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      return;
    // What it has sent may still be read: `receive` finds the end.
    if (count < 0)
      break;
    unsent.erase(unsent.begin(), unsent.begin() + count);
  }
  unsent.clear();
}

Connection::Found Connection::receive(Message &message) {
  while (isOpen()) {
    auto *bytes = reinterpret_cast<std::byte *>(&incoming);
    ssize_t count =
        recv(file(), bytes + received, sizeof(incoming) - received, 0);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      return Found::Nothing;
    if (count <= 0)
      break;
    received += size_t(count);
    if (received < sizeof(incoming))
      continue;
    received = 0;
    if (!incoming.isValid())
      break;
    message = incoming;
    return Found::Message;
  }
  close();
  return Found::End;
}

Connection::Found Connection::await(Message &message,
                                    Clock::time_point deadline) {
  while (true) {
    Found found = receive(message);
    if (found != Found::Nothing || !waitFor(file(), POLLIN, deadline))
      return found;
  }
}
