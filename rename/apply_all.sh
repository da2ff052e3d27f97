set -e
cd $1
python3 rename/classes.py . rename/classes.json
for d in service/app service/batches service/batches/sources service/html service/llm service/llm/prompts service/monitoring service/persistence service/persistence/migrations service/pipeline service/remediation service/remediation/rules service/schemas service/scoring service/composition; do mkdir -p $d; done
w() { printf '"""%s"""\n' "$2" > $1/__init__.py; git add $1/__init__.py; }
w service/schemas "The service's values: the diagnosis and its parts, events, stored records, errors."
w service/scoring "From a crash report to probabilities of causes: retrieval, features, calibration, telemetry evidence."
w service/remediation "Which changes of a job's configuration may cure a cause, with their values and what rules them out."
w service/remediation/rules "Rules that compute the value of a change from the facts of a log."
w service/composition "The answer in words: headline, explanation, evidence and the other parts of a diagnosis."
w service/llm "Chat models: prompt, client, grounding, claim verification, conversation."
w service/llm/prompts "The texts that a model is instructed with."
w service/pipeline "One job from its output to its diagnosis; the one place where the parts meet."
w service/persistence "What is kept, in SQLite by default and in PostgreSQL by URL: triages, batches with their jobs, keys, the audit log."
w service/batches "Batches: many jobs triaged by workers, whatever dies meanwhile."
w service/batches/sources "Where the jobs of a batch come from: folders, uploads, Slurm, Ray, Kubernetes."
w service/monitoring "Jobs that are watched: run under whycrash, or found as they end."
w service/app "What every face of whycrash asks: the triage service."
w service/html "Pages of HTML that need nothing but themselves."
python3 rename/move.py . rename/mods.json
git mv service/reasoning/calibration.json service/scoring/calibration.json
for f in service/store/migrations/*; do [ "$(basename $f)" = __pycache__ ] || git mv -f $f service/persistence/migrations/; done
for f in $(git ls-files service/reasoning service/store service/batch service/watching service/page | grep -v "__init__.py"); do echo LEFT $f; done
git rm -q -f $(git ls-files service/reasoning service/store service/batch service/watching service/page | grep "__init__.py")
rm -rf service/reasoning service/store service/batch service/watching service/page
.venv/bin/ruff check -q --fix --select I,F401 . || true
python3 - <<'PY'
import re
def sub(p,*pairs):
    s=open(p).read()
    for a,b in pairs:
        if a not in s: print("NOT FOUND",p,a)
        s=s.replace(a,b)
    open(p,'w').write(s)
sub("tests/test_layers.py",('"service/store"','"service/persistence"'),('"ray": ("service/batch",','"ray": ("service/batches",'),('"service/batch/sources", "service/watching"','"service/batches/sources", "service/monitoring"'))
sub("pyproject.toml",('"reasoning/calibration.json", "THREATS.md", "store/migrations/*", "telemetry/*.yaml", "reasoning/prompts/*"','"scoring/calibration.json", "THREATS.md", "persistence/migrations/*", "telemetry/*.yaml", "llm/prompts/*"'))
sub("ui/cli/main.py",("command.Options(","command.WatchOptions("))
sub("ingest/logs/configs/launch.py",('"LaunchReader", "Row",','"ConfigLine", "LaunchReader",'))
sub("tests/service/batch/test_worker.py",('"WentWrong"','"StepFailed"'),('"WasRead"','"JobWasRead"'))
sub("tests/service/batch/test_models.py",('"Pause"','"Backoff"'))
PY
python3 rename/testmoves.py .
python3 rename/move.py . rename/testmods.json
for d in tests/service/batch tests/service/store tests/service/watching; do find $d -type f 2>/dev/null | grep -v pycache || true; done
find tests service ui ingest -type d -empty -delete 2>/dev/null || true
.venv/bin/ruff check -q --fix --select I,F401 . || true
sed -i 's/ROOT = Path(__file__).parents\[2\]/ROOT = Path(__file__).parents[3]/; s/ROOT = Path(__file__).parent.parent.parent$/ROOT = Path(__file__).parents[3]/' tests/ui/cli/test_batch.py tests/ui/cli/test_run.py
sed -i "s/import LaunchReader, Row/import ConfigLine, LaunchReader/; s/\bRow(/ConfigLine(/g" tests/ingest/logs/configs/test_launch_secrets.py
