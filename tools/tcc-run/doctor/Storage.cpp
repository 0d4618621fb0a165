#include "tools/tcc-run/doctor/Check.h"
#include "tools/tcc-run/doctor/Machine.h"
#include "tools/tcc-run/doctor/Text.h"

#include <algorithm>
#include <sys/resource.h>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tools;
using namespace tcc::tools::doctor;

static constexpr uint64_t kMiB = uint64_t(1) << 20, kGiB = uint64_t(1) << 30;

static Finding examineSpace(const Machine &machine) {
  auto space = machine.calls.space(machine.folder);
  if (!space.ok())
    return unknown(space.takeStatus());
  std::string found =
      concat(nameBytes(space->free), " of ", nameBytes(space->total),
             " free in '", machine.folder, "'");
  const char *advice = "make room, or keep fewer checkpoints";
  const char *command = "tcc-run train ... --keep-last 2";
  constexpr uint64_t kTight = 10 * kGiB, kNone = kGiB;
  if (space->free < kNone)
    return problem(found, advice, command);
  return space->free < kTight ? warning(found, advice, command) : ok(found);
}

namespace {

/// A file system by its number in Linux' magic.h; `advice` is null where it
/// keeps files as a run needs them.
struct FileSystem {
  uint64_t magic;
  const char *name;
  const char *advice;
};

constexpr char kInMemory[] =
    "keep checkpoints on a disk: here they take memory "
    "and go with the machine";
constexpr char kInContainer[] = "mount a folder of the host: what is written "
                                "here goes with the container";
constexpr char kRemote[] = "keep checkpoints here, data on a local disk: each "
                           "sample goes over the network";

constexpr FileSystem kFileSystems[] = {
    {0x01021994, "tmpfs", kInMemory},
    {0x858458f6, "ramfs", kInMemory},
    {0x794c7630, "overlay", kInContainer},
    {0x6969, "nfs", kRemote},
    {0xff534d42, "cifs", kRemote},
    {0xfe534d42, "smb", kRemote},
    {0x01021997, "9p", kRemote},
    {0x65735546, "fuse",
     "if a program brings files from elsewhere, keep data "
     "on a local disk"},
    {0xef53, "ext4", nullptr},
    {0x58465342, "xfs", nullptr},
    {0x9123683e, "btrfs", nullptr},
    {0x2fc12fc1, "zfs", nullptr},
    {0xf2f52010, "f2fs", nullptr},
    {0xca451a4e, "bcachefs", nullptr},
    {0x0bd00bd0, "lustre", nullptr},
    {0x00c36400, "ceph", nullptr},
    {0x19830326, "beegfs", nullptr},
    {0x47504653, "gpfs", nullptr},
};

} // namespace

static Finding examineFileSystem(const Machine &machine) {
  auto magic = machine.calls.fileSystem(machine.folder);
  if (!magic.ok())
    return unknown(magic.takeStatus());
  auto known = std::ranges::find(kFileSystems, *magic, &FileSystem::magic);
  if (known == std::end(kFileSystems))
    return unknown(concat("'", machine.folder, "' is on a file system of type ",
                          *magic, ", of which nothing is known here"));
  std::string found = concat(known->name, " at '", machine.folder, "'");
  if (!known->advice)
    return ok(found);
  return warning(found, known->advice, "tcc-run doctor OTHER-FOLDER");
}

static std::string nameRate(double bytes) {
  return nameBytes(static_cast<uint64_t>(bytes)) + "/s";
}

static Finding examineSpeed(const Machine &machine) {
  auto speed = machine.calls.diskSpeed(machine.folder);
  const char *other = "tcc-run doctor OTHER-FOLDER";
  if (!speed.ok())
    return problem(std::string(speed.takeStatus().message()),
                   "name a folder that may be written", other);
  std::string found =
      concat("'", machine.folder, "' takes ", nameRate(speed->written),
             ", gives ", nameRate(speed->read), " (", nameBytes(speed->bytes),
             speed->isDirect ? ")" : ", by the page cache)");
  const char *advice = "use a faster disk, or write checkpoints less often";
  constexpr double kSlow = 100 * kMiB, kTooSlow = 10 * kMiB;
  if (speed->written < kTooSlow)
    return problem(found, advice, other);
  return speed->written < kSlow ? warning(found, advice, other) : ok(found);
}

/// Bytes that may wait to be written, by NAME_bytes, or else by NAME_ratio of
/// the memory that is there.
static Result<uint64_t> readDirty(const Machine &machine,
                                  const std::string &name, uint64_t memory) {
  const std::string path = "/proc/sys/vm/" + name;
  auto bytes = machine.readInteger(path + "_bytes");
  if (!bytes.ok())
    return bytes.takeStatus();
  if (*bytes > 0)
    return static_cast<uint64_t>(*bytes);
  auto ratio = machine.readInteger(path + "_ratio");
  if (!ratio.ok())
    return ratio.takeStatus();
  if (*ratio < 0 || *ratio > 100)
    return unexpected(path + "_ratio", std::to_string(*ratio), "a percentage");
  return static_cast<uint64_t>(static_cast<double>(memory) *
                               static_cast<double>(*ratio) / 100);
}

static Finding examineDirty(const Machine &machine) {
  auto text = machine.read("/proc/meminfo");
  if (!text.ok())
    return unknown(text.takeStatus());
  auto memory = findKibibytes(*text, "MemAvailable");
  if (!memory)
    return unknown(
        unexpected("/proc/meminfo", *text, "a line 'MemAvailable: N kB'"));
  auto begin = readDirty(machine, "dirty_background", *memory);
  if (!begin.ok())
    return unknown(begin.takeStatus());
  auto most = readDirty(machine, "dirty", *memory);
  if (!most.ok())
    return unknown(most.takeStatus());
  std::string found =
      concat("writing begins at ", nameBytes(*begin),
             " that wait for a disk, programs stop at ", nameBytes(*most));
  constexpr uint64_t kMuch = 16 * kGiB, kLittle = 64 * kMiB;
  const std::string set =
      machine.asRoot(concat("sysctl -w vm.dirty_background_bytes=", 256 * kMiB,
                            " vm.dirty_bytes=", 4 * kGiB));
  if (*begin >= *most)
    return warning(found, "have writing begin well before programs stop", set);
  if (*most > kMuch)
    return warning(found,
                   "have disks write early: whoever syncs a file waits "
                   "for all that others left",
                   set);
  if (*most < kLittle)
    return warning(found,
                   "allow more, so that a checkpoint is written while "
                   "steps go on",
                   set);
  return ok(found);
}

static std::string nameLimit(uint64_t limit) {
  return limit == kUnlimited ? "unlimited" : std::to_string(limit);
}

static Finding examineFiles(const Machine &machine) {
  auto limit = machine.calls.limit(RLIMIT_NOFILE);
  if (!limit.ok())
    return unknown(limit.takeStatus());
  std::string found =
      concat(nameLimit(limit->soft), ", at most ", nameLimit(limit->hard));
  constexpr uint64_t kEnough = 4096, kWanted = 65536;
  if (limit->soft >= kEnough)
    return ok(found);
  uint64_t wanted = std::min(kWanted, limit->hard);
  if (wanted <= limit->soft)
    return warning(found, "have the system allow more, then log in again",
                   "echo '* - nofile 65536' | " +
                       machine.asRoot("tee -a /etc/security/limits.conf"));
  return warning(found, "allow more before a run with many shards",
                 concat("ulimit -n ", wanted));
}

static constexpr Check kChecks[] = {
    {"disk space", "a run ends where a checkpoint does not fit", examineSpace},
    {"file system",
     "says whether checkpoints outlive the machine, and how far "
     "data are",
     examineFileSystem},
    {"disk speed",
     "steps wait where a checkpoint is not written before the "
     "next",
     examineSpeed},
    {"dirty pages", "a checkpoint is synced, and waits for what others wrote",
     examineDirty},
    {"open files", "each shard of the data stays open", examineFiles},
};

std::span<const Check> doctor::storageChecks() { return kChecks; }
