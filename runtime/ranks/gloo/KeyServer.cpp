#include "runtime/ranks/gloo/KeyServer.h"

#include "runtime/ranks/gloo/Resolve.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <thread>
#include <utility>
#include <vector>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::ranks;
using asio::ip::tcp;

static_assert(std::endian::native == std::endian::little);

namespace {

using Value = std::shared_ptr<const std::vector<char>>;
class Connection;

/// What the server keeps; used by its thread alone, but for the number of
/// connections.
struct Keys {
  std::atomic<int> connections = 0;
  std::map<std::string, Value> values;
  std::multimap<std::string, std::shared_ptr<Connection>> waiting;
  Value reason; ///< why a client gave up, the first that did; or null
};

/// Lives as long as something of it is under way. An error ends it.
class Connection : public std::enable_shared_from_this<Connection> {
public:
  Connection(tcp::socket socket, Keys &keys)
      : socket(std::move(socket)), keys(keys) {
    ++keys.connections;
  }
  ~Connection() { --keys.connections; }

  void greet();
  void answer(Value found, bool isLost = false);

private:
  void readRequest();
  void readBody();
  void perform();
  void set();
  void giveUp(std::vector<char> reason);
  void end();
  void awaitEnd();

  /// Reads or writes all of `buffer`, then goes on.
  template <typename Buffer>
  void read(Buffer buffer, void (Connection::*next)());
  template <typename Buffer>
  void write(Buffer buffer, void (Connection::*next)());

  tcp::socket socket;
  Keys &keys;
  std::array<char, sizeof(kGreeting)> greeting = {};
  RequestHeader header = {};
  std::vector<char> body; ///< key, then value
  std::string key;
  SetAnswer setAnswer = SetAnswer::Done;
  GetAnswer getAnswer = {};
  Value value;      ///< that is written
  std::string name; ///< the first key that it set
};

} // namespace

template <typename Buffer>
void Connection::read(Buffer buffer, void (Connection::*next)()) {
  asio::async_read(
      socket, buffer,
      [self = shared_from_this(), next](asio::error_code error, size_t) {
        if (!error)
          ((*self).*next)();
        else
          self->end();
      });
}

template <typename Buffer>
void Connection::write(Buffer buffer, void (Connection::*next)()) {
  asio::async_write(
      socket, buffer,
      [self = shared_from_this(), next](asio::error_code error, size_t) {
        if (!error)
          ((*self).*next)();
        else
          self->end();
      });
}

/// Whoever waits for a key hears why it may never come.
void Connection::giveUp(std::vector<char> reason) {
  if (keys.reason)
    return;
  keys.reason = std::make_shared<const std::vector<char>>(std::move(reason));
  for (auto &[awaited, waiter] : std::exchange(keys.waiting, {}))
    if (waiter.get() != this)
      waiter->answer(keys.reason, /*isLost=*/true);
}

/// One that has set nothing is not missed.
void Connection::end() {
  std::string reason = name + " ended before all ranks had met";
  if (!name.empty())
    giveUp({reason.begin(), reason.end()});
}

/// Until it has its answer a client says nothing but that it gives up.
void Connection::awaitEnd() {
  socket.async_wait(tcp::socket::wait_read,
                    [self = shared_from_this()](asio::error_code) {
                      asio::error_code error;
                      bool isWaiting = std::ranges::any_of(
                          self->keys.waiting,
                          [&](const auto &one) { return one.second == self; });
                      if (isWaiting && self->socket.available(error) == 0)
                        self->end();
                      else if (isWaiting)
                        self->readRequest();
                    });
}

void Connection::greet() {
  asio::async_read(socket, asio::buffer(greeting),
                   [self = shared_from_this()](asio::error_code error, size_t) {
                     if (!error && std::equal(self->greeting.begin(),
                                              self->greeting.end(), kGreeting))
                       self->write(asio::buffer(kGreeting),
                                   &Connection::readRequest);
                   });
}

void Connection::readRequest() {
  read(asio::buffer(&header, sizeof(header)), &Connection::readBody);
}

void Connection::readBody() {
  if (header.keyBytes > kMaxKeyBytes || header.valueBytes > kMaxValueBytes)
    return;
  body.resize(size_t(header.keyBytes) + header.valueBytes);
  read(asio::buffer(body), &Connection::perform);
}

void Connection::perform() {
  key.assign(body.data(), header.keyBytes);
  if (header.kind == RequestKind::Set)
    return set();
  if (header.kind == RequestKind::GiveUp)
    return giveUp({body.begin() + header.keyBytes, body.end()});
  if (header.kind != RequestKind::Get)
    return;
  if (auto found = keys.values.find(key); found != keys.values.end())
    return answer(found->second);
  if (keys.reason)
    return answer(keys.reason, /*isLost=*/true);
  keys.waiting.emplace(key, shared_from_this());
  awaitEnd();
}

/// Whoever waits for the key gets it.
void Connection::set() {
  auto added = std::make_shared<const std::vector<char>>(
      body.begin() + header.keyBytes, body.end());
  bool isNew = keys.values.emplace(key, added).second;
  setAnswer = isNew ? SetAnswer::Done : SetAnswer::Taken;
  if (isNew && name.empty())
    name = key;
  auto [first, last] = keys.waiting.equal_range(key);
  for (auto waiter = first; waiter != last; ++waiter)
    waiter->second->answer(added);
  keys.waiting.erase(first, last);
  write(asio::buffer(&setAnswer, sizeof(setAnswer)), &Connection::readRequest);
}

void Connection::answer(Value found, bool isLost) {
  value = std::move(found);
  getAnswer = {isLost, static_cast<uint32_t>(value->size())};
  write(std::array{asio::const_buffer(&getAnswer, sizeof(getAnswer)),
                   asio::const_buffer(value->data(), value->size())},
        &Connection::readRequest);
}

struct KeyServer::State {
  Keys keys; ///< outlives the connections, which `io` holds
  asio::io_context io;
  tcp::acceptor acceptor{io};
  asio::steady_timer pause{io};
  std::thread thread;

  Status open(const std::string &host, uint16_t port,
              std::chrono::steady_clock::time_point deadline);
  void accept();
  void acceptLater();
};

Status KeyServer::State::open(const std::string &host, uint16_t port,
                              std::chrono::steady_clock::time_point deadline) {
  auto found = resolve(io, host, port, deadline);
  if (!found.ok())
    return found.takeStatus();
  asio::error_code error;
  tcp::endpoint place = found->begin()->endpoint();
  if (!place.address().is_loopback())
    place = tcp::endpoint(place.protocol(), port);
  auto attempt = [&](auto call) {
    if (!error)
      call();
  };
  attempt([&] { acceptor.open(place.protocol(), error); });
  attempt(
      [&] { acceptor.set_option(tcp::acceptor::reuse_address(true), error); });
  attempt([&] { acceptor.bind(place, error); });
  attempt(
      [&] { acceptor.listen(tcp::acceptor::max_listen_connections, error); });
  if (error)
    return makeError(Code::Usage, "rank 0 cannot listen at port ", port, ": ",
                     error.message());
  return Status();
}

void KeyServer::State::accept() {
  acceptor.async_accept([this](asio::error_code error, tcp::socket socket) {
    if (!acceptor.is_open())
      return;
    if (error)
      return acceptLater();
    std::make_shared<Connection>(std::move(socket), keys)->greet();
    accept();
  });
}

/// Where there is no file for one more, asking again at once keeps a core busy.
void KeyServer::State::acceptLater() {
  pause.expires_after(std::chrono::milliseconds(100));
  pause.async_wait([this](asio::error_code error) {
    if (!error)
      accept();
  });
}

KeyServer::KeyServer(std::unique_ptr<State> state) : state(std::move(state)) {}

Result<std::unique_ptr<KeyServer>>
KeyServer::listen(const std::string &host, uint16_t port,
                  std::chrono::steady_clock::time_point deadline) {
  auto state = std::make_unique<State>();
  if (Status status = state->open(host, port, deadline); !status.ok())
    return status;
  state->accept();
  state->thread = std::thread([one = state.get()] { one->io.run(); });
  return std::unique_ptr<KeyServer>(new KeyServer(std::move(state)));
}

uint16_t KeyServer::port() const {
  return state->acceptor.local_endpoint().port();
}

void KeyServer::waitForClients(std::chrono::milliseconds longest) const {
  constexpr std::chrono::milliseconds kLook(5);
  auto end = std::chrono::steady_clock::now() + longest;
  while (state->keys.connections > 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(kLook);
}

KeyServer::~KeyServer() {
  state->io.stop();
  state->thread.join();
  state->keys.waiting.clear(); // their sockets are of `io`
}
