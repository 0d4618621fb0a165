#include "runtime/ranks/gloo/KeyClient.h"

#include "runtime/ranks/gloo/KeyServer.h"
#include "runtime/ranks/gloo/Resolve.h"

#include <array>
#include <cstring>
#include <thread>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::ranks;
using asio::ip::tcp;

/// Between two attempts to connect.
static constexpr std::chrono::milliseconds kPause(20);

struct KeyClient::State {
  asio::io_context io;
  tcp::socket socket{io};
  Clock::time_point deadline;

  asio::error_code wait(const asio::error_code &error);
  asio::error_code connect(const tcp::resolver::results_type &places);
  template <typename Buffers> asio::error_code read(const Buffers &buffers);
  template <typename Buffers> asio::error_code write(const Buffers &buffers);
  Status request(RequestKind kind, const std::string &key,
                 std::span<const char> value);
};

/// Does what is under way, which sets `error`; what takes too long is ended,
/// but not the connection, for the last word.
asio::error_code KeyClient::State::wait(const asio::error_code &error) {
  io.restart();
  io.run_until(deadline);
  if (io.stopped())
    return error;
  asio::error_code ignored;
  socket.cancel(ignored);
  io.run();
  return asio::error::timed_out;
}

asio::error_code
KeyClient::State::connect(const tcp::resolver::results_type &places) {
  asio::error_code error;
  socket = tcp::socket(io);
  asio::async_connect(
      socket, places,
      [&](asio::error_code found, const tcp::endpoint &) { error = found; });
  return wait(error);
}

template <typename Buffers>
asio::error_code KeyClient::State::read(const Buffers &buffers) {
  asio::error_code error;
  asio::async_read(socket, buffers,
                   [&](asio::error_code found, size_t) { error = found; });
  return wait(error);
}

template <typename Buffers>
asio::error_code KeyClient::State::write(const Buffers &buffers) {
  asio::error_code error;
  asio::async_write(socket, buffers,
                    [&](asio::error_code found, size_t) { error = found; });
  return wait(error);
}

static Status lost(const asio::error_code &error) {
  if (error == asio::error::timed_out)
    return Status(Code::Peer, "no word in time");
  return makeError(Code::Peer, "no word from rank 0: ", error.message());
}

KeyClient::KeyClient(std::unique_ptr<State> state) : state(std::move(state)) {}
KeyClient::~KeyClient() = default;

/// Whatever else listens there says something else, or nothing, as the server
/// of another version does.
static Status checkGreeting(std::span<const char> answer,
                            const asio::error_code &error,
                            const std::string &place) {
  bool isGreeting = std::equal(answer.begin(), answer.end(), kGreeting);
  if (!error && isGreeting)
    return Status();
  return makeError(Code::Usage, "what listens at ", place,
                   " is no rendezvous of this tcc-run",
                   error ? ": " + error.message() : "");
}

Result<std::unique_ptr<KeyClient>>
KeyClient::connect(const std::string &host, uint16_t port,
                   Clock::time_point deadline) {
  std::string place = concat(host, ":", port);
  auto state = std::make_unique<State>();
  state->deadline = deadline;
  asio::error_code error;
  auto places = resolve(state->io, host, port, deadline);
  if (!places.ok())
    return places.takeStatus();
  while ((error = state->connect(*places))) {
    if (Clock::now() + kPause >= deadline)
      return makeError(Code::Peer, "there is no rank 0 at ", place, ": ",
                       error.message());
    std::this_thread::sleep_for(kPause);
  }
  state->socket.set_option(tcp::no_delay(true), error);
  std::array<char, sizeof(kGreeting)> answer = {};
  if (!error)
    error = state->write(asio::buffer(kGreeting));
  if (!error)
    error = state->read(asio::buffer(answer));
  if (Status status = checkGreeting(answer, error, place); !status.ok())
    return status;
  return std::unique_ptr<KeyClient>(new KeyClient(std::move(state)));
}

Status KeyClient::State::request(RequestKind kind, const std::string &key,
                                 std::span<const char> value) {
  RequestHeader header = {kind, static_cast<uint32_t>(key.size()),
                          static_cast<uint32_t>(value.size())};
  asio::error_code error =
      write(std::array{asio::const_buffer(&header, sizeof(header)),
                       asio::const_buffer(key.data(), key.size()),
                       asio::const_buffer(value.data(), value.size())});
  return error ? lost(error) : Status();
}

Status KeyClient::set(const std::string &key, std::span<const char> value) {
  if (Status status = state->request(RequestKind::Set, key, value);
      !status.ok())
    return status;
  SetAnswer answer = SetAnswer::Done;
  if (auto error = state->read(asio::buffer(&answer, sizeof(answer))))
    return lost(error);
  if (answer == SetAnswer::Taken)
    return makeError(Code::Usage, "'", key, "' is taken");
  return Status();
}

Result<std::vector<char>> KeyClient::get(const std::string &key) {
  if (Status status = state->request(RequestKind::Get, key, {}); !status.ok())
    return status;
  GetAnswer answer = {};
  if (auto error = state->read(asio::buffer(&answer, sizeof(answer))))
    return lost(error);
  if (answer.bytes > kMaxValueBytes)
    return makeError(Code::Peer, "a value of ", answer.bytes,
                     " bytes from rank 0");
  std::vector<char> value(answer.bytes);
  if (auto error = state->read(asio::buffer(value)))
    return lost(error);
  if (!answer.isLost)
    return value;
  isToldReason = true;
  return Status(Code::Peer, std::string(value.begin(), value.end()));
}

/// A few bytes, which the system takes at once.
void KeyClient::giveUp(std::string_view why) {
  RequestHeader header = {RequestKind::GiveUp, 0,
                          static_cast<uint32_t>(why.size())};
  asio::error_code ignored;
  asio::write(state->socket,
              std::array{asio::const_buffer(&header, sizeof(header)),
                         asio::const_buffer(why.data(), why.size())},
              ignored);
}

std::string KeyClient::ownAddress() const {
  asio::error_code error;
  return state->socket.local_endpoint(error).address().to_string();
}
