#include "runtime/ranks/Launch.h"

#include "tests/runtime/Fixture.h"

#include <map>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;

using Values = std::map<std::string, std::string>;

static Result<Launch> read(const Values &values) {
  return readLaunch([&](const char *name) -> const char * {
    auto found = values.find(name);
    return found == values.end() ? nullptr : found->second.c_str();
  });
}

TEST(Launch, IsOfOneRankWhereNothingIsSet) {
  Launch launch = unwrap(read({{"PATH", "/bin"}}));
  EXPECT_EQ(launch.rank, 0);
  EXPECT_EQ(launch.size, 1);
  EXPECT_EQ(launch.host, "");
  launch = unwrap(read({{"MASTER_ADDR", "a"}, {"LOCAL_RANK", "0"}}));
  EXPECT_EQ(launch.size, 1);
  launch = unwrap(read({{"RANK", "0"}, {"WORLD_SIZE", "1"}}));
  EXPECT_EQ(launch.size, 1);
}

/// Its own store listens at MASTER_PORT.
TEST(Launch, ReadsWhatTorchrunSets) {
  Values values = {{"RANK", "3"},
                   {"WORLD_SIZE", "4"},
                   {"LOCAL_RANK", "1"},
                   {"MASTER_ADDR", "node-0"},
                   {"MASTER_PORT", "29500"}};
  Launch launch = unwrap(read(values));
  EXPECT_EQ(launch.rank, 3);
  EXPECT_EQ(launch.size, 4);
  EXPECT_EQ(launch.localRank, 1);
  EXPECT_EQ(launch.host, "node-0");
  EXPECT_EQ(launch.port, 29501);
  values["TCC_RENDEZVOUS"] = "[::1]:7";
  launch = unwrap(read(values));
  EXPECT_EQ(launch.host, "::1");
  EXPECT_EQ(launch.port, 7);
}

/// A batch script has these variables, too, but is no task.
TEST(Launch, ReadsWhatSrunSets) {
  Values values = {
      {"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"SLURM_LOCALID", "0"}};
  EXPECT_EQ(unwrap(read(values)).size, 1);
  values["SLURM_STEP_NUM_TASKS"] = "1";
  EXPECT_EQ(unwrap(read(values)).size, 1);
  values["SLURM_STEP_NUM_TASKS"] = "2";
  values["TCC_RENDEZVOUS"] = "node-0:9000";
  Launch launch = unwrap(read(values));
  EXPECT_EQ(launch.transport, TransportKind::Gloo);
  EXPECT_EQ(launch.rank, 1);
  EXPECT_EQ(launch.size, 2);
  EXPECT_EQ(launch.localRank, 0);
  EXPECT_EQ(launch.host, "node-0");
  // torchrun, once on each node, says more.
  values["RANK"] = "5";
  values["WORLD_SIZE"] = "8";
  EXPECT_EQ(unwrap(read(values)).rank, 5);
}

/// PMI leads to an MPI, unless an address is given; clusters may have one of
/// them set for all that srun begins.
TEST(Launch, ReadsWhatSrunSetsForMpi) {
  Values pmix = {{"SLURM_PROCID", "3"},
                 {"SLURM_STEP_NUM_TASKS", "4"},
                 {"SLURM_LOCALID", "1"},
                 {"PMIX_RANK", "3"}};
  Values pmi2 = {{"SLURM_PROCID", "3"},  {"SLURM_STEP_NUM_TASKS", "4"},
                 {"SLURM_LOCALID", "1"}, {"PMI_RANK", "3"},
                 {"PMI_SIZE", "4"},      {"PMI_FD", "11"}};
  for (auto [values, transport] : {std::pair(&pmix, TransportKind::OpenMpi),
                                   std::pair(&pmi2, TransportKind::Mpich)}) {
    Launch launch = unwrap(read(*values));
    EXPECT_EQ(launch.transport, transport);
    EXPECT_EQ(launch.rank, 3);
    EXPECT_EQ(launch.size, 4);
    EXPECT_EQ(launch.localRank, 1);
    (*values)["TCC_RENDEZVOUS"] = "node-0:9000";
    launch = unwrap(read(*values));
    EXPECT_EQ(launch.transport, TransportKind::Gloo);
    EXPECT_EQ(launch.rank, 3);
    EXPECT_EQ(launch.host, "node-0");
  }
}

/// In an allocation of Slurm mpiexec begins ranks from one task of srun.
TEST(Launch, ReadsOfAJobWhoBeganTheRank) {
  Values job = {{"SLURM_PROCID", "0"},
                {"SLURM_STEP_NUM_TASKS", "2"},
                {"SLURM_LOCALID", "0"},
                {"PMIX_RANK", "0"}};
  Values hydra = job, openMpi = job;
  hydra.merge(
      Values{{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}, {"MPI_LOCALRANKID", "2"}});
  openMpi.merge(Values{{"OMPI_COMM_WORLD_RANK", "5"},
                       {"OMPI_COMM_WORLD_SIZE", "8"},
                       {"OMPI_COMM_WORLD_LOCAL_RANK", "2"}});
  for (Values *values : {&hydra, &openMpi})
    for (const char *rendezvous : {"", "node-0:9000"}) {
      if (*rendezvous)
        (*values)["TCC_RENDEZVOUS"] = rendezvous;
      Launch launch = unwrap(read(*values));
      EXPECT_EQ(launch.rank, 5);
      EXPECT_EQ(launch.size, 8);
      EXPECT_EQ(launch.localRank, 2);
      EXPECT_EQ(launch.transport == TransportKind::Gloo, *rendezvous != 0);
    }
}

/// Ranks meet as MPI says: there is no address.
TEST(Launch, ReadsWhatMpirunSets) {
  Values values = {{"OMPI_COMM_WORLD_RANK", "3"},
                   {"OMPI_COMM_WORLD_SIZE", "4"},
                   {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}};
  Launch launch = unwrap(read(values));
  EXPECT_EQ(launch.transport, TransportKind::OpenMpi);
  EXPECT_EQ(launch.rank, 3);
  EXPECT_EQ(launch.size, 4);
  EXPECT_EQ(launch.localRank, 1);
  values = {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "0"}};
  launch = unwrap(read(values));
  EXPECT_EQ(launch.transport, TransportKind::Mpich);
  EXPECT_EQ(launch.rank, 1);
  EXPECT_EQ(launch.size, 2);
  // Who sets RANK, too, wants no MPI.
  values["RANK"] = "0";
  values["WORLD_SIZE"] = "1";
  EXPECT_EQ(unwrap(read(values)).transport, TransportKind::Gloo);
}

TEST(Launch, RefusesWhatIsHalfSetOrContradicts) {
  const std::pair<Values, const char *> rows[] = {
      {{{"RANK", "1"}}, "RANK is '1', but WORLD_SIZE is not set"},
      {{{"WORLD_SIZE", "2"}}, "WORLD_SIZE is '2', but RANK is not set"},
      {{{"RANK", "2"}, {"WORLD_SIZE", "2"}}, "RANK is '2', expected 0 to 1"},
      {{{"RANK", "-1"}, {"WORLD_SIZE", "2"}}, "RANK is '-1', expected 0 to 1"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "two"}}, "WORLD_SIZE is 'two', expected"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}},
       "LOCAL_RANK is '1', expected 0 to 0"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}},
       "this is rank 0 of 2, but neither TCC_RENDEZVOUS nor MASTER_ADDR says"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}},
       "MASTER_ADDR is 'a', but MASTER_PORT is not set"},
      {{{"RANK", "0"},
        {"WORLD_SIZE", "2"},
        {"MASTER_ADDR", "a"},
        {"MASTER_PORT", "65535"}},
       "MASTER_PORT is '65535', expected 1 to 65534"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"TCC_RENDEZVOUS", "host"}},
       "TCC_RENDEZVOUS is 'host', expected HOST:PORT"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"TCC_RENDEZVOUS", ":80"}},
       "TCC_RENDEZVOUS is ':80', expected HOST:PORT"},
      {{{"TCC_RENDEZVOUS", "a:80"}},
       "TCC_RENDEZVOUS is 'a:80', but RANK is not set"},
      {{{"OMPI_COMM_WORLD_RANK", "1"}},
       "OMPI_COMM_WORLD_RANK is '1', but OMPI_COMM_WORLD_SIZE is not set"},
      {{{"SLURM_PROCID", "1"},
        {"SLURM_NTASKS", "2"},
        {"TCC_RENDEZVOUS", "a:80"}},
       "TCC_RENDEZVOUS is 'a:80', but RANK is not set"},
      {{{"SLURM_STEP_NUM_TASKS", "2"}, {"TCC_RENDEZVOUS", "a:80"}},
       "SLURM_STEP_NUM_TASKS is '2', but SLURM_PROCID is not set"},
      {{{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "0"}},
       "SLURM_STEP_NUM_TASKS is '2', but nothing says how these tasks of srun "
       "meet"},
  };
  for (const auto &[values, message] : rows) {
    Result<Launch> launch = read(values);
    ASSERT_FALSE(launch.ok()) << message;
    EXPECT_THAT(launch.takeStatus(), failsWith(Code::Usage, message));
  }
}
