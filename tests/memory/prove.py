"""Proves the least time of a program within a budget: prove.py < PROBLEM > ANSWER

Runs in .venv-solver, where OR-Tools is. A problem is JSON: of each launch, in order, the
cost of running it once (costs), the units of memory of its result (sizes) and whose
results it reads (reads), and the budget in these units.

In stage t launch t runs, before it any of the earlier ones again, in their order, and
values are kept from stage to stage (Jain et al., Checkmate, 2020).
"""

import json
import sys

from ortools.sat.python import cp_model

SECONDS = 120


class Checkmate:
    """Stage t may run launches up to t, and keeps values for the next."""

    def __init__(self, model, problem):
        self.model, self.sizes, self.reads = model, problem["sizes"], problem["reads"]
        costs = problem["costs"]
        self.users = [[] for _ in costs]
        for i, reads in enumerate(self.reads):
            for j in reads:
                self.users[j].append(i)
        stages = range(len(costs))
        self.runs = [[model.new_bool_var("") for _ in range(t + 1)] for t in stages]
        self.kept = [[model.new_bool_var("") for _ in range(t)] for t in range(len(costs) + 1)]
        for t in stages:
            self.link(t)
            self.limit(t, problem["budget"])
        for t in stages:
            model.add(self.runs[t][t] == 1)
        model.minimize(sum(costs[i] * self.runs[t][i] for t in stages for i in range(t + 1)))

    def link(self, t):
        """What is read was kept or made in the stage; so is what is kept."""
        model, runs, kept = self.model, self.runs[t], self.kept[t]
        for i in range(t + 1):
            for j in self.reads[i]:
                there = [runs[j]] + ([kept[j]] if j < t else [])
                model.add_bool_or([*there, runs[i].Not()])
            later = self.kept[t + 1][i]
            model.add_bool_or([runs[i], later.Not()] + ([kept[i]] if i < t else []))

    def limit(self, t, budget):
        """The bytes while a launch k of stage t runs: what is there, and is read by k or
        a later one, or kept."""
        model, runs, kept = self.model, self.runs[t], self.kept[t]
        terms = [[] for _ in range(t + 1)]
        for i in range(t + 1):
            if self.sizes[i] == 0:
                continue
            wanted = self.kept[t + 1][i]
            for k in reversed(range(t + 1)):
                if k in self.users[i]:
                    longer = model.new_bool_var("")
                    model.add_implication(wanted, longer)
                    model.add_implication(runs[k], longer)
                    wanted = longer
                there = model.new_bool_var("")
                if i < t:
                    model.add_bool_or([kept[i].Not(), wanted.Not(), there])
                if k > i:
                    model.add_bool_or([runs[i].Not(), wanted.Not(), there])
                if k == i:
                    model.add_implication(runs[i], there)
                terms[k].append((self.sizes[i], there))
        for k, row in enumerate(terms):
            if row:
                total = sum(size * there for size, there in row)
                model.add(total <= budget).only_enforce_if(runs[k])


def main():
    model = cp_model.CpModel()
    Checkmate(model, json.load(sys.stdin))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = SECONDS
    solver.parameters.num_workers = 8  # of different strategies
    status = solver.solve(model)
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    answer = {
        "best": solver.objective_value if found else None,
        "bound": solver.best_objective_bound,
        "is_proven": status == cp_model.OPTIMAL,
    }
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
