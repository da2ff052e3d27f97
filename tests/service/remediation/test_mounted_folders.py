"""A folder of a container lies on what the manifest mounts there."""

from __future__ import annotations

from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from tests.tables import each_row
from tests.warm import explained

LOG = (
    "Traceback (most recent call last):\n"
    '  File "/app/run.py", line 9, in <module>\n    tok = AutoTokenizer.from_pretrained(args.model)\n'
    '  File "/usr/lib/python3.11/site-packages/transformers/utils/hub.py", line 491, in cached_files\n'
    "    raise OSError(\n"
    "huggingface_hub.errors.LocalEntryNotFoundError: Cannot find the requested files in the disk cache and "
    "outgoing traffic has been disabled. To enable hf.co look-ups and downloads online, set "
    "'local_files_only' to False.\n"
    "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in "
    "the cached files.\n"
)
POD = """apiVersion: v1
kind: Pod
spec:
  containers:
    - name: a
      image: x
      command: [python, run.py]
      env:
        - {{name: HF_HUB_OFFLINE, value: "{offline}"}}
        - {{name: HF_HOME, value: {home}}}
      volumeMounts:
        - {{name: c, mountPath: {mount}}}
        - {{name: o, mountPath: /out}}
"""


@each_row(
    ("home", "mount", "to"),
    [
        ("/cache/hub", "/cache/hf-hub", "/cache/hf-hub"),
        ("/data/hf", "/vol/hf", "/vol/hf"),
        # It lies on a mount, or none is like it.
        ("/cache/hf/home", "/cache/hf", ""),
        ("/cache/hub", "/vol/models", ""),
        ("/hub", "/hf", ""),
    ],
)
def test_that_a_cache_is_looked_for_where_a_volume_is_mounted(
    triage: Triage, home: str, mount: str, to: str
) -> None:
    pod = POD.format(offline=1, home=home, mount=mount)
    made = explained(triage, LOG, ConfigFile("pod.yaml", pod))
    assert made.cause == "hub-unreachable"
    assert (f"+        - {{name: HF_HOME, value: {to}}}\n" in (made.patch or "")) is bool(to)


@each_row(("offline", "offered"), [(1, False), (0, True)])
def test_that_a_call_is_not_changed_which_the_offline_switch_decides(
    triage: Triage, offline: int, offered: bool
) -> None:
    pod = POD.format(offline=offline, home="/cache/hf", mount="/cache")
    keys = {change.key for change in explained(triage, LOG, ConfigFile("pod.yaml", pod)).changes}
    assert ("from_pretrained.local_files_only" in keys) is offered
