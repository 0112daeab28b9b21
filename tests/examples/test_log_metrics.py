"""examples/log_metrics.py, with the tools that are installed; and its functions with recorders in place of the tools, which
check names by the tools' rules. examples/grafana.json asks for metrics and labels that exist."""
import glob
import importlib.util
import json
import os
import re
import subprocess
import sys
import unittest

import common
import weir

SOURCE = os.environ["WEIR_SOURCE"]
EXAMPLE = os.path.join(SOURCE, "examples/log_metrics.py")
FUNCTIONS = {"rate", "sum", "by", "clamp_max", "increase", "label_values", "query_result"}


def load_example():
    specification = importlib.util.spec_from_file_location("log_metrics", EXAMPLE)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


class Recorder:
    """Stands in for a writer of TensorBoard, a run of W&B and the module mlflow."""

    def __init__(self):
        self.rows = []

    def add_scalar(self, name, value, step):
        self.rows.append((name, value, step))

    def log(self, figures, step):
        self.rows += [(name, value, step) for name, value in figures.items()]

    log_metrics = log


class LogMetrics(common.Data):
    def test_functions(self):
        example = load_example()
        for log in (example.log_tensorboard, example.log_wandb, example.log_mlflow):
            target = Recorder()
            with weir.Loader(self.data, batch_size=4) as loader:
                for step, _ in enumerate(loader):
                    log(target, step)
            names = {name for name, _, _ in target.rows}
            self.assertIn("weir/data/data_wait", names)
            self.assertEqual({step for _, _, step in target.rows}, set(range(step + 1)))
            for name, value, _ in target.rows:
                self.assertRegex(name, r"\A[\w\-. /]{1,250}\Z")  # MLflow's rule, the strictest
                self.assertIsInstance(value, float)

    def run_example(self, where):
        if importlib.util.find_spec(where) is None:
            self.skipTest(f"{where} is not installed")
        folder = os.path.join(self.work, where)
        files = {"MLFLOW_TRACKING_URI": f"file:{folder}/runs", "MLFLOW_ALLOW_FILE_STORE": "true"}
        os.mkdir(folder)
        done = subprocess.run([sys.executable, EXAMPLE, self.data, where, folder], capture_output=True, text=True,
                              timeout=300, cwd=self.work, env=dict(os.environ, **files))
        self.assertEqual(done.returncode, 0, done.stderr)
        return folder

    def test_tensorboard(self):
        folder = self.run_example("tensorboard")
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
        events = EventAccumulator(folder)
        events.Reload()
        self.assertIn("weir/data/data_wait", events.Tags()["scalars"])
        self.assertEqual(len(events.Scalars("weir/data/images_per_s")), 3)

    def test_wandb(self):
        folder = self.run_example("wandb")
        files = glob.glob(folder + "/wandb/offline-run-*/*.wandb")
        self.assertEqual(len(files), 1)
        with open(files[0], "rb") as file:
            self.assertIn(b"weir/data/data_wait", file.read())

    def test_mlflow(self):
        folder = self.run_example("mlflow")
        self.assertEqual(len(glob.glob(folder + "/runs/0/*/metrics/weir/data/data_wait")), 1)


class Grafana(common.Data):
    def test_dashboard(self):
        with weir.Loader(self.data, batch_size=4) as loader:
            list(loader)
            text = loader._metrics()
        names = set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))
        labels = set(re.findall(r"[{,](\w+)=", text)) | {"rank", "instance"}
        with open(os.path.join(SOURCE, "examples/grafana.json")) as file:
            dashboard = json.load(file)
        self.assertEqual({"title", "panels", "templating", "schemaVersion"} - set(dashboard), set())
        panels, found = dashboard["panels"], set()
        self.assertEqual(len({panel["id"] for panel in panels}), len(panels))
        for panel in panels:
            self.assertEqual({"type", "title", "gridPos", "targets", "datasource"} - set(panel), set(), panel["title"])
            self.assertLessEqual(panel["gridPos"]["x"] + panel["gridPos"]["w"], 24)
            found.update(target["expr"] for target in panel["targets"])
        found.update(variable["query"] for variable in dashboard["templating"]["list"] if variable["type"] == "query")
        for query in found:
            self.assertEqual(query.count("("), query.count(")"), query)
            words = set(re.findall(r"\b[a-z]\w*", re.sub(r'"[^"]*"|\[[^\]]*\]|\$\w+', "", query)))
            self.assertTrue(words <= names | labels | FUNCTIONS, (query, words - names - labels - FUNCTIONS))
            self.assertTrue(words & names, query)


if __name__ == "__main__":
    unittest.main()
