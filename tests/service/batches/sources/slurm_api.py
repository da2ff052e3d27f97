"""Write an accounting by the models of Slurm's published API: `python slurm_api.py FOLDER`, as a program.

FOLDER holds their package; the version and the jobs come as JSON, and the answer and the parameters that a
request may have go as JSON.
"""

from __future__ import annotations

import inspect
import json
import sys

if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    # Of the test's own folder: it is no part of the program.
    import slurmrestapi  # type: ignore[import-not-found]

    given = json.load(sys.stdin)
    mark = f"00{given['version']}"
    model = getattr(slurmrestapi, f"V{mark}OpenapiSlurmdbdJobsResp")
    made = model.from_dict({"jobs": given["jobs"], "errors": [], "warnings": []})
    asked = getattr(slurmrestapi.SlurmdbApi, f"slurmdb_v{mark}_get_jobs")
    takes = sorted(inspect.signature(asked).parameters)
    json.dump({"answer": made.to_dict(), "takes": takes}, sys.stdout)
