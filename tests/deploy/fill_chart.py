"""Fill the chart with Helm's engine and hold it against Kubernetes' schemas; run by the tools' own Python.

Reads the `chart`, `cases` of values, `releases` of Kubernetes and `files` of objects; writes what it found.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import helm_python as helm
import kubernetes_validate
import yaml

given = json.load(sys.stdin)
report = helm.lint(given["chart"], strict=True)
# 1 is a remark, 2 a warning.
found = {
    "lint": [row for row in report["messages"] if row["severity"] > 1],
    "wrong": [],
    "kinds": [],
    "pods": [],
}
found["refused"] = []
chart = helm.Chart.load(given["chart"])


def check(objects: list[dict[str, object]]) -> None:
    """Hold objects against each release's schema."""
    for release in given["releases"]:
        for made in objects:
            # Another project's kind, which no release of Kubernetes has a schema of.
            if made["kind"] == "PodMonitor":
                continue
            try:
                kubernetes_validate.validate(made, release, strict=True)
            except Exception as error:  # noqa: BLE001 - its errors share no type of their own
                found["wrong"].append(f"{release} {made['kind']}: {error}")


for path in given.get("files", ()):
    check(list(yaml.safe_load_all(Path(path).read_text(encoding="utf-8"))))
for values in given["cases"]:
    try:
        chart.validate_schema(values)
        filled = chart.render(values, name="one", namespace="jobs")
    except helm.HelmError as error:
        found["refused"].append(str(error))
        continue
    texts = [text for name, text in filled.items() if name.endswith(".yaml")]
    objects = [made for text in texts for made in yaml.safe_load_all(text) if made]
    found["kinds"].append([made["kind"] for made in objects])
    found["pods"] += [made["spec"]["template"]["spec"] for made in objects if made["kind"] == "Deployment"]
    check(objects)
json.dump(found, sys.stdout)
