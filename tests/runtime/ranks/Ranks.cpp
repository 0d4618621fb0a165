#include "tests/runtime/ranks/Ranks.h"

#include "tests/runtime/Fixture.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;

uint16_t tests::findFreePort() {
  int probe = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in place = {};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(place);
  auto *address = reinterpret_cast<sockaddr *>(&place);
  EXPECT_EQ(bind(probe, address, size), 0);
  EXPECT_EQ(getsockname(probe, address, &size), 0);
  close(probe);
  return ntohs(place.sin_port);
}

void tests::usePlugins() {
  setenv("TCC_PLUGINS", TCC_PLUGIN_FOLDER, /*overwrite=*/1);
}

void tests::runRanks(int size, const std::function<void(Communicator &)> &work,
                     const Patience &patience) {
  usePlugins();
  uint16_t port = findFreePort();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      auto communicator = openCommunicator(
          {.rank = rank, .size = size, .host = "127.0.0.1", .port = port},
          patience);
      ASSERT_TRUE(communicator.ok()) << communicator.takeStatus().message();
      work(**communicator);
    });
  for (std::thread &thread : threads)
    thread.join();
}
