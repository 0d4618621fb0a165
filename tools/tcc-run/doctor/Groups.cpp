#include "tools/tcc-run/doctor/Groups.h"

#include "tools/tcc-run/doctor/Text.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tools;
using namespace tcc::tools::doctor;

static constexpr char kMemberships[] = "/proc/self/cgroup";

namespace {

/// A file that may have a limit, and the folder that it lies in.
struct Place {
  std::string group;
  const char *file;
};

} // namespace

static void addPlaces(const std::string &hierarchy, std::string group,
                      const char *file, std::vector<Place> &places) {
  // A container may see its own group as the root; that one's name is "/".
  for (; group.size() > 1; group.resize(group.rfind('/')))
    places.push_back({hierarchy + group, file});
  places.push_back({hierarchy, file});
}

/// Where limits of a controller may be, by the lines "hierarchy:controllers:
/// group"; those of version 2 have no controllers.
static Result<std::vector<Place>> listPlaces(const Machine &machine,
                                             const LimitFile &file) {
  auto text = machine.read(kMemberships);
  if (!text.ok())
    return text.takeStatus();
  const std::string mounts = "/sys/fs/cgroup";
  // Beside hierarchies of version 1, that of version 2 has a folder of its own.
  const std::string unified =
      machine.exists(mounts + "/unified") ? mounts + "/unified" : mounts;
  std::vector<Place> places;
  for (std::string_view rest = *text; !rest.empty();) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string_view::npos ||
        !line.substr(second + 1).starts_with('/'))
      return unexpected(kMemberships, line, "hierarchy:controllers:/group");
    std::string controllers(line.substr(first + 1, second - first - 1));
    std::string group(line.substr(second + 1));
    if (controllers.empty())
      addPlaces(unified, group, file.unified, places);
    else if (("," + controllers + ",")
                 .find(concat(",", file.controller, ",")) != std::string::npos)
      addPlaces(concat(mounts, "/", file.controller), group, file.separate,
                places);
  }
  return places;
}

Result<std::optional<GroupLimit>> doctor::findLimit(const Machine &machine,
                                                    const LimitFile &file) {
  auto places = listPlaces(machine, file);
  if (!places.ok())
    return places.takeStatus();
  std::optional<GroupLimit> least;
  for (const Place &place : *places) {
    std::string path = concat(place.group, "/", place.file);
    if (!machine.exists(path))
      continue;
    auto text = machine.read(path);
    if (!text.ok())
      return text.takeStatus();
    if (*text == "max")
      continue;
    auto most = parseInteger(*text);
    if (!most || *most < 0)
      return unexpected(path, *text, "a whole number or max");
    if (!least || static_cast<uint64_t>(*most) < least->most)
      least = {place.group, static_cast<uint64_t>(*most)};
  }
  return least;
}
