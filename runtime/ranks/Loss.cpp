#include "runtime/ranks/Loss.h"

#include "runtime/base/Status.h"

#include <unistd.h>

using namespace tcc;
using namespace tcc::runtime;

Sighting runtime::seeOwn(int rank, const Position &position) {
  Sighting own = {.rank = rank, .position = position};
  if (gethostname(own.host, sizeof(own.host) - 1) != 0)
    own.host[0] = 0;
  return own;
}

std::string runtime::nameOf(const Sighting &rank) {
  return rank.host[0] ? concat("rank ", rank.rank, " (host ", rank.host, ")")
                      : concat("rank ", rank.rank);
}

std::string runtime::describeTime(uint32_t milliseconds) {
  std::string text = std::to_string(milliseconds / 1000);
  if (uint32_t tenths = milliseconds % 1000 / 100)
    text += concat(".", tenths);
  return text + " s";
}

static std::string describeCause(const Loss &loss) {
  switch (loss.cause) {
  case Cause::Ended:
    return "its process ended";
  case Cause::Silent:
    return concat("no word of it for ", describeTime(loss.milliseconds));
  case Cause::Left:
    return "it left after an error, or without close";
  case Cause::Failed:
    return concat("its connection to another rank failed: ", loss.why);
  case Cause::Behind:
    return concat("others waited for it for ", describeTime(loss.milliseconds),
                  " ", loss.why);
  }
  return "";
}

/// The line of a rank that is lost itself: because others do not hear it, or
/// because nobody knows whom it lost.
static std::string describeOwn(const Loss &loss, const Sighting &own) {
  std::string where = describe(own.position);
  if (loss.cause == Cause::Failed)
    return concat(nameOf(own), " lost another rank ", where, ": ", loss.why);
  return concat(nameOf(own), " was given up by the others ", where, ": ",
                describeCause(loss));
}

std::string runtime::describe(const Loss &loss, const Sighting &own) {
  if (loss.who.rank == own.rank)
    return describeOwn(loss, own);
  return concat(nameOf(loss.who), " was lost: ", describeCause(loss),
                "; it was last heard of ", describe(loss.who.position),
                "; this is ", nameOf(own), " ", describe(own.position));
}
