"""The arguments and options of the `whycrash` command, each with what `--help` says of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def _hook_places() -> list[str]:
    # Only a shell that asks what may follow waits for it.
    from ui.cli.hook import hooks

    return list(hooks())


Lang = Annotated[
    str,
    typer.Option(
        "--lang",
        metavar="en|zh",
        help="Language of the answer: en or zh. Default: the log's, else the locale's.",
    ),
]

Logs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="LOG",
        help=(
            "The job's output: files, a folder, an archive (.tar, .zip, .gz, .zst, .xz, .bz2), or `-` "
            "for standard input."
        ),
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the diagnosis as one JSON object.")]
ConfigFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--config", metavar="FILE", help="A launch script or configuration of the job; may be repeated."
    ),
]
SourceFolders = Annotated[
    list[Path] | None,
    typer.Option(
        "--source",
        metavar="DIR",
        help=(
            "Look the traceback's calls up in this folder (site-packages, an environment, a checkout) and "
            "read what led to the failing statement; may be repeated."
        ),
    ),
]
HealthyRun = Annotated[
    Path | None,
    typer.Option(
        "--good", metavar="FILE", help="A healthy run of the same job: what it prints too is no cause."
    ),
]
Telemetry = Annotated[
    str,
    typer.Option(
        "--telemetry",
        metavar="FILE|live|prometheus://...",
        help="What the machine says: a snapshot's file, this machine now, or a Prometheus server.",
    ),
]
ExitCode = Annotated[
    int | None,
    typer.Option(
        "--exit-code", metavar="N", help="The exit code that the job ended with; 137 and -9 tell of SIGKILL."
    ),
]
Signal = Annotated[
    str, typer.Option("--signal", metavar="NAME", help="The signal that killed it, such as SIGKILL or 9.")
]
SchedulerState = Annotated[
    str,
    typer.Option(
        "--state",
        metavar="STATE",
        help="What its scheduler says of its end, such as OUT_OF_MEMORY or OOMKilled.",
    ),
]
Full = Annotated[
    bool, typer.Option("--full", help="Print all that there is, not what one acts on in one screen.")
]
PatchFile = Annotated[
    Path | None, typer.Option("--patch", metavar="FILE", help="Write the patch to this file as well.")
]
ApplyPatch = Annotated[
    bool, typer.Option("--apply", help="Ask, and apply the patch to the files that --config names.")
]
UndoPatch = Annotated[
    bool, typer.Option("--undo", help="Take the latest applied patch back; with --config, that of this file.")
]
NoModel = Annotated[bool, typer.Option("--no-model", help="Ask no model, whatever WHYCRASH_MODEL says.")]
ShowPrompt = Annotated[
    bool, typer.Option("--show-prompt", help="Print exactly what a model would be sent, and send nothing.")
]
JobCommand = Annotated[
    list[str], typer.Argument(metavar="COMMAND", help="The job, after `--`, with its own arguments.")
]
HealthyTemplates = Annotated[
    Path | None,
    typer.Option(
        "--good",
        metavar="FILE",
        help="Templates of a healthy run: written when the job ends well, taken away when it fails.",
    ),
]
PostFailed = Annotated[
    str,
    typer.Option(
        "--post",
        metavar="URL",
        help="Hand a failed job in at this whycrash service too; its key is in WHYCRASH_KEY.",
    ),
]
DiagnosisFile = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE", help="Write the diagnosis of a failed job to this file, as JSON."),
]
SampleInterval = Annotated[
    float,
    typer.Option(
        "--telemetry-every",
        metavar="SECONDS",
        min=0,
        max=3600,
        help="How often the machine is sampled; 0 is never.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print no explanation; for --out and --post.")]
WatchedPlace = Annotated[
    str,
    typer.Argument(
        metavar="ray|slurm|kubernetes|loki|elasticsearch|DIR|URL",
        help=(
            "Where jobs end: a Ray cluster, Slurm's accounting, Kubernetes, Loki, Elasticsearch or "
            "OpenSearch, a folder of logs, or an object store such as s3://BUCKET/FOLDER."
        ),
    ),
]
RayDashboard = Annotated[
    str,
    typer.Option(
        "--dashboard",
        metavar="URL",
        help="Ray's dashboard. Default: WHYCRASH_RAY_DASHBOARD, else http://127.0.0.1:8265.",
    ),
]
WatchedApi = Annotated[
    str,
    typer.Option(
        "--api",
        metavar="URL",
        help=(
            "Kubernetes' API, with /api/v1/namespaces/NAME behind it for one name space (default: that of "
            "the cluster that whycrash runs in); the address of Loki, of Elasticsearch with its index, or of "
            "slurmrestd (default: sacct)."
        ),
    ),
]
WatchedUsers = Annotated[
    str,
    typer.Option(
        "--users", metavar="NAMES", help="Slurm users, by commas. Default: those that sacct gives by itself."
    ),
]
LookInterval = Annotated[
    float, typer.Option("--every", metavar="SECONDS", min=0.2, help="How often to look.")
]
SettleTime = Annotated[
    float,
    typer.Option(
        "--settle",
        metavar="SECONDS",
        min=0,
        help="A log in a folder is over when it has not grown for so long.",
    ),
]
SinceHours = Annotated[
    float,
    typer.Option(
        "--since-hours",
        metavar="HOURS",
        min=0,
        help="Also jobs that ended in the hours before. Default: from now on, or from where it was left.",
    ),
]
Webhook = Annotated[str, typer.Option("--webhook", metavar="URL", help="POST each diagnosis there, as JSON.")]
TellSlack = Annotated[
    bool,
    typer.Option("--slack", help="Tell the incoming webhook of Slack that WHYCRASH_SLACK_WEBHOOK names."),
]
PostEach = Annotated[
    str,
    typer.Option(
        "--post", metavar="URL", help="Hand each job in at this whycrash service; its key is in WHYCRASH_KEY."
    ),
]
JsonLines = Annotated[bool, typer.Option("--json", help="Print each diagnosis as one line of JSON.")]
Once = Annotated[bool, typer.Option("--once", help="Look once and end.")]
HostAddress = Annotated[
    str,
    typer.Option(
        "--host",
        metavar="ADDRESS",
        help="Address to bind to; any but a loopback one needs an API key first. Default: WHYCRASH_HOST.",
    ),
]
Port = Annotated[
    int | None,
    typer.Option(
        "--port", metavar="PORT", min=0, max=65535, help="Port; 0 is any free one. Default: WHYCRASH_PORT."
    ),
]
BatchPaths = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="PATH", help="The jobs' output: a folder, files, an archive, or JSON lines of jobs."
    ),
]
ResultsFile = Annotated[
    Path,
    typer.Option(
        "--out",
        metavar="FILE",
        help=(
            "The results, a JSON object a line. The same command with the same file goes on where it stopped."
        ),
    ),
]
SummaryPage = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Write the summary as a page too.")
]
CsvFile = Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write the results as CSV too.")]
FromSlurm = Annotated[
    bool, typer.Option("--slurm", help="Take the failed jobs that sacct knows, and their output files.")
]
FromRay = Annotated[
    str,
    typer.Option(
        "--ray", metavar="URL", help="Take the failed jobs of a Ray cluster, by its dashboard's address."
    ),
]
FromObjects = Annotated[
    str,
    typer.Option(
        "--objects",
        metavar="URL",
        help="Take the jobs of an object store's folder: s3://BUCKET/FOLDER, gs://, az://, oss://, http://.",
    ),
]
FromSlurmrestd = Annotated[
    str,
    typer.Option(
        "--slurmrestd",
        metavar="URL",
        help="Ask Slurm's REST API instead of sacct; its token is in SLURM_JWT.",
    ),
]
FromLoki = Annotated[
    str, typer.Option("--loki", metavar="URL", help="Take the jobs that Grafana Loki has lines of.")
]
FromElasticsearch = Annotated[
    str,
    typer.Option(
        "--elasticsearch",
        metavar="URL",
        help="Take the jobs of an index of Elasticsearch or OpenSearch: https://HOST:9200/INDEX.",
    ),
]
LineQuery = Annotated[
    str,
    typer.Option(
        "--query",
        metavar="WORDS",
        help=(
            'Which lines: for Loki a stream selector such as {namespace="train"}, for Elasticsearch words in '
            "Lucene's syntax."
        ),
    ),
]
JobLabel = Annotated[
    str,
    typer.Option(
        "--job-label",
        metavar="NAME",
        help=(
            "The label of Loki, or field of Elasticsearch, that tells jobs apart. Default: an operator's "
            "label, else the pod's, the file's, the service's name."
        ),
    ),
]
OnlyNew = Annotated[
    bool,
    typer.Option(
        "--new", help="Leave out the jobs that an earlier batch of this source with --new has answered."
    ),
]
FromKubernetes = Annotated[
    str,
    typer.Option(
        "--kubernetes",
        metavar="DIR|URL",
        help=(
            "Take the pods of a folder such as /var/log/pods, or of `kubectl logs` output; or those that "
            "failed, of a cluster's API: http://127.0.0.1:8001/api/v1/namespaces/NAME of `kubectl proxy`."
        ),
    ),
]
SinceTime = Annotated[
    str,
    typer.Option(
        "--since",
        metavar="TIME",
        help=(
            "With sources but files: 2026-11-20, 2026-11-20T08:00, 36h or 7d. Default with Slurm, Loki and "
            "Elasticsearch: 1d."
        ),
    ),
]
BatchUsers = Annotated[
    str,
    typer.Option(
        "--users",
        metavar="NAMES",
        help="With Slurm: whose jobs, by commas. Default: those that sacct gives you.",
    ),
]
WorkerCount = Annotated[
    int | None,
    typer.Option(
        "--workers",
        metavar="COUNT",
        min=1,
        help="Processes that triage. Default: WHYCRASH_WORKERS, else one for each core.",
    ),
]
BatchName = Annotated[
    str, typer.Option("--name", metavar="NAME", help="What to call the batch. Default: where it is from.")
]
ForTeam = Annotated[
    str | None,
    typer.Option(
        "--team",
        metavar="TEAM",
        help="The team of a server's keys that alone will find them; empty for everybody. Default: whose "
        "they were, else everybody's.",
    ),
]
OfTeam = Annotated[
    str, typer.Option("--team", metavar="TEAM", help="Search what was taken in for this team, too.")
]
SnapshotInterval = Annotated[
    float,
    typer.Option(
        "--watch",
        metavar="SECONDS",
        min=0,
        max=3600,
        help="Take one each so many seconds until stopped; 0 takes one.",
    ),
]
SnapshotFile = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE",
        help="Write to this file instead of standard output; while watching, it holds the latest.",
    ),
]
EarlierSnapshot = Annotated[
    Path | None,
    typer.Option("--since", metavar="FILE", help="An earlier snapshot: counters say what came since."),
]
SettingsFile = Annotated[
    Path | None, typer.Argument(metavar="FILE", help="A whycrash.toml of a folder that you trust.")
]
ForgetFile = Annotated[bool, typer.Option("--forget", help="Let the file count no more.")]
ShowSettings = Annotated[
    bool, typer.Option("--print", help="Print what would be written, and write nothing.")
]
WithoutAsking = Annotated[
    bool, typer.Option("--yes", help="Do not ask; for scripts that have read the file.")
]
BundleJob = Annotated[
    str,
    typer.Option(
        "--job",
        metavar="ID",
        help="A Slurm job, [NAMESPACE/]POD, a container, a Ray submission, or pid:NUMBER with its children.",
    ),
]
BundleFile = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE", help="The archive to write. Default: whycrash-TIME.tar.gz here."),
]
AsIssue = Annotated[
    bool,
    typer.Option(
        "--issue", help="Print the text of an issue for the framework's maintainers instead of an archive."
    ),
]
HookPlace = Annotated[
    str,
    typer.Argument(
        metavar="slurm|torchrun|ray|kubernetes", help="Where your jobs run.", autocompletion=_hook_places
    ),
]
ShellName = Annotated[
    str,
    typer.Argument(
        metavar="bash|zsh|fish", help="The shell.", autocompletion=lambda: ["bash", "zsh", "fish"]
    ),
]
