"""Fill the chart with Helm's engine and hold it against Kubernetes' schemas; run by the tools' own Python.

Reads `chart`, `cases` of values and `releases` of Kubernetes as JSON; writes what was found as JSON.
"""

from __future__ import annotations

import json
import sys

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
    for release in given["releases"]:
        for made in objects:
            # Another project's kind, which no release of Kubernetes has a schema of.
            if made["kind"] == "PodMonitor":
                continue
            try:
                kubernetes_validate.validate(made, release, strict=True)
            except Exception as error:  # noqa: BLE001 - its errors share no type of their own
                found["wrong"].append(f"{release} {made['kind']}: {error}")
json.dump(found, sys.stdout)
