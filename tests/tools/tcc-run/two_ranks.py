"""The manifests and scripts of examples/two-ranks: schemas that are known, and the Job's
command as two processes of this machine.
"""

import os
import subprocess
import sys
import tempfile

import harness
import kubernetes_validate
import yaml
from processes import find_free_port

VERSION = "1.37"
EXAMPLES = os.path.join(harness.ROOT, "examples")
FOLDER = os.path.join(EXAMPLES, "two-ranks")


def read(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return list(yaml.safe_load_all(file))


def make_digits(folder):
    """As examples/train-digits/train.sh has it."""
    recipe = os.path.join(EXAMPLES, "train-digits/recipe.toml")
    prepare = os.path.join(EXAMPLES, "train-digits/prepare.py")
    subprocess.run([sys.executable, prepare], cwd=folder, check=True, capture_output=True)
    harness.call("tcc", "model.onnx", "--dim", "batch=32", f"--train={recipe}", "-o",
                 "digits.tcc", "-q", cwd=folder)  # fmt: skip


def run_pods(container, folder):
    """The exit codes, and all that they print."""
    given = {row["name"]: row["value"] for row in container["env"]}
    given["TCC_RENDEZVOUS"] = f"127.0.0.1:{find_free_port()}"
    given["PATH"] = harness.BIN + os.pathsep + os.environ["PATH"]
    pods = [
        subprocess.Popen(container["command"], cwd=folder, text=True, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT,
                         env={**os.environ, **given, "JOB_COMPLETION_INDEX": str(index)})
        for index in range(int(given["WORLD_SIZE"]))
    ]  # fmt: skip
    said = [pod.communicate(timeout=300)[0] for pod in pods]
    return [pod.returncode for pod in pods], "".join(said)


def main():
    tally = harness.Tally()
    documents = read("job.yaml")
    for document in documents:
        try:
            kubernetes_validate.validate(document, VERSION, strict=True)
            problem = ""
        except kubernetes_validate.ValidationError as error:
            problem = str(error)
        tally.check(f"job.yaml: {document['kind']}", not problem, problem)
    tally.check("mpijob.yaml", [row["kind"] for row in read("mpijob.yaml")] == ["MPIJob"])
    for script in ("job.sbatch", "torchrun.sh"):
        done = subprocess.run(["bash", "-n", os.path.join(FOLDER, script)], check=False)
        tally.check(script, done.returncode == 0)
    container = documents[1]["spec"]["template"]["spec"]["containers"][0]
    with tempfile.TemporaryDirectory() as folder:
        make_digits(folder)
        for says in ("1200 steps, loss", "1200 steps, nothing was left to do"):
            codes, said = run_pods(container, folder)
            tally.check(f"two pods: {says}", codes == [0, 0] and says in said, said)
    tally.close()


main()
