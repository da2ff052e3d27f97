"""The `whycrash` command: its arguments, and how errors end it."""

from __future__ import annotations

import gc
import io
import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

import ui.cli.startup  # noqa: F401 - before any model is built

# isort: split
from corpus.errors import CorpusError
from corpus.message import Message
from eval.errors import EvalError
from ingest.errors import IngestError, MissingInputError
from service.schemas.errors import ServiceError
from ui.cli.administration import audit, forget, keys_app
from ui.cli.codes import COMPLETES, MISUSE
from ui.cli.options import (
    ApplyPatch,
    AsIssue,
    AsJson,
    BatchName,
    BatchPaths,
    BatchUsers,
    BundleFile,
    BundleJob,
    ConfigFiles,
    CsvFile,
    DiagnosisFile,
    EarlierSnapshot,
    ExitCode,
    ForgetFile,
    ForTeam,
    FromElasticsearch,
    FromKubernetes,
    FromLoki,
    FromObjects,
    FromRay,
    FromSlurm,
    FromSlurmrestd,
    Full,
    HealthyRun,
    HealthyTemplates,
    HookPlace,
    HostAddress,
    JobCommand,
    JobLabel,
    JsonLines,
    Lang,
    LineQuery,
    Logs,
    LookInterval,
    NoModel,
    OfTeam,
    Once,
    OnlyNew,
    PatchFile,
    Port,
    PostEach,
    PostFailed,
    Quiet,
    RayDashboard,
    ResultsFile,
    SampleInterval,
    SchedulerState,
    SettingsFile,
    SettleTime,
    ShellName,
    ShowPrompt,
    ShowSettings,
    Signal,
    SinceHours,
    SinceTime,
    SnapshotFile,
    SnapshotInterval,
    SourceFolders,
    SummaryPage,
    Telemetry,
    TellSlack,
    UndoPatch,
    WatchedApi,
    WatchedPlace,
    WatchedUsers,
    Webhook,
    WithoutAsking,
    WorkerCount,
)

app = typer.Typer(
    name="whycrash",
    help="Say why a GPU training or serving job died, with the lines that prove it, and what to change.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
corpus_app = typer.Typer(help="Look into the knowledge and check it.", no_args_is_help=True)
app.add_typer(corpus_app, name="corpus")
app.add_typer(keys_app, name="keys")
app.command(short_help="Print who did what on the server.")(audit)
app.command(short_help="Delete all that is kept of a caller.")(forget)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"whycrash {version('whycrash')}")
        raise typer.Exit


@app.callback()
def options(
    show: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Say why a GPU training or serving job died, with the lines that prove it, and what to change."""


@app.command()
def explain(
    logs: Logs = None,
    as_json: AsJson = False,
    lang: Lang = "",
    config: ConfigFiles = None,
    source: SourceFolders = None,
    good: HealthyRun = None,
    telemetry: Telemetry = "",
    exit_code: ExitCode = None,
    signal: Signal = "",
    state: SchedulerState = "",
    no_model: NoModel = False,
    show_prompt: ShowPrompt = False,
    patch: PatchFile = None,
    apply: ApplyPatch = False,
    undo: UndoPatch = False,
    full: Full = False,
) -> None:
    """Explain why a job died. Exit code 0: explained, 3: unknown, 4: no failure found, 2: misuse."""
    # Imported here, as in each command: a command should start with what it needs and no more.
    if undo:
        from ui.cli import patches

        raise typer.Exit(patches.undo(logs or [], config or [], lang))
    if not logs:
        raise MissingInputError(Message("errors.log-not-given"))
    # What a start makes stays: to collect after every 700 objects of half a million costs a tenth of it.
    gc.set_threshold(500_000)
    from service.signals import tracing
    from service.signals.starting import signals
    from ui.cli import explain as command
    from ui.job_outcomes import outcome_of

    outcome = outcome_of(exit_code, signal, state, sign="--")
    with signals("explain"), tracing.span("triage"):
        code = command.run(
            logs,
            as_json=as_json,
            lang=lang,
            configs=config or [],
            sources=source or [],
            good=good,
            telemetry=telemetry,
            model=not no_model,
            show_prompt=show_prompt,
            outcome=outcome,
            patch=patch,
            apply=apply,
            full=full,
        )
    raise typer.Exit(code)


_THROUGH = {"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}


@app.command(context_settings=_THROUGH)
def run(
    command: JobCommand,
    config: ConfigFiles = None,
    good: HealthyTemplates = None,
    post: PostFailed = "",
    out: DiagnosisFile = None,
    every: SampleInterval = 15,
    quiet: Quiet = False,
    lang: Lang = "",
) -> None:
    """Run a job unchanged, and explain it when it fails. The exit code, or the signal, is the job's own."""
    from ui.cli import run as command_

    options = command_.RunOptions(tuple(config or ()), good, post, out, every, lang, quiet)
    raise typer.Exit(command_.run(command, options))


@app.command()
def watch(
    what: WatchedPlace,
    ray: RayDashboard = "",
    api: WatchedApi = "",
    query: LineQuery = "",
    job_label: JobLabel = "",
    users: WatchedUsers = "",
    every: LookInterval = 30,
    settle: SettleTime = 60,
    since: SinceHours = 0,
    webhook: Webhook = "",
    slack: TellSlack = False,
    post: PostEach = "",
    as_json: JsonLines = False,
    once: Once = False,
    lang: Lang = "",
) -> None:
    """Triage jobs as they fail. Nothing leaves the machine unless a target is named."""
    from ui.cli import watch as command

    options = command.WatchOptions(
        ray, api, query, job_label, users, every, settle, since, webhook, slack, post, as_json, once, lang
    )
    raise typer.Exit(command.run(what, options))


@app.command()
def serve(host: HostAddress = "", port: Port = None) -> None:
    """Serve the API, the chat page and Slack in one process."""
    from ui.cli import serve as command

    raise typer.Exit(command.run(host, port))


@app.command()
def slack() -> None:
    """Answer Slack over Socket Mode; needs no public address."""
    from ui.cli import slack as command

    raise typer.Exit(command.run())


@app.command(short_help="Serve coding assistants over standard input and output (MCP).")
def mcp(
    skill: Annotated[
        Path | None,
        typer.Option(
            "--skill",
            metavar="DIR",
            help="Put the skill into a folder of skills, such as .agents/skills, and serve nothing.",
        ),
    ] = None,
) -> None:
    """Serve coding assistants over standard input and output (MCP), or give them the skill."""
    from ui.cli import mcp as command

    raise typer.Exit(command.run(skill))


@app.command(short_help="Take write-ups and past crashes into the index.")
def ingest(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH", help="Write-ups: Markdown, text or HTML files, or folders."),
    ] = None,
    logs: Annotated[
        list[Path] | None,
        typer.Option("--logs", metavar="DIR", help="A folder of crashed jobs' logs; may be repeated."),
    ] = None,
    team: ForTeam = None,
) -> None:
    """Bring the index up to date with the corpus, your write-ups and your past crashes."""
    from ui.cli import ingest as command

    raise typer.Exit(command.run(paths or [], logs or [], team))


@app.command()
def batch(
    paths: BatchPaths = None,
    out: ResultsFile = Path("results.jsonl"),
    html: SummaryPage = None,
    csv: CsvFile = None,
    slurm: FromSlurm = False,
    slurmrestd: FromSlurmrestd = "",
    ray: FromRay = "",
    kubernetes: FromKubernetes = "",
    objects: FromObjects = "",
    loki: FromLoki = "",
    elasticsearch: FromElasticsearch = "",
    query: LineQuery = "",
    job_label: JobLabel = "",
    since: SinceTime = "",
    new: OnlyNew = False,
    users: BatchUsers = "",
    workers: WorkerCount = None,
    name: BatchName = "",
    lang: Lang = "",
) -> None:
    """Triage many jobs. Exit code 0: all answered, 3: not all, 4: no failure, 2: misuse, 130: stopped."""
    from ui.cli import batch as command
    from ui.cli.batch_sources import BatchArguments

    wanted = BatchArguments(
        tuple(paths or ()),
        out,
        html,
        csv,
        lang,
        workers,
        name,
        slurm=slurm,
        slurmrestd=slurmrestd,
        ray=ray,
        kubernetes=kubernetes,
        objects=objects,
        loki=loki,
        elasticsearch=elasticsearch,
        query=query,
        job_label=job_label,
        since=since,
        users=users,
        new=new,
    )
    raise typer.Exit(command.run(wanted))


@app.command()
def search(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to look for, in English or Chinese.")],
    count: Annotated[
        int, typer.Option("--count", "-n", metavar="COUNT", min=1, max=50, help="How many results.")
    ] = 5,
    lang: Lang = "",
    team: OfTeam = "",
) -> None:
    """Search cases, notes and past crashes."""
    from ui.cli import search as command

    raise typer.Exit(command.run(text, count, lang, team))


@app.command(short_help="Write down what this machine says of itself.")
def snapshot(watch: SnapshotInterval = 0, out: SnapshotFile = None, since: EarlierSnapshot = None) -> None:
    """Write down what this machine says of itself, as JSON that `explain --telemetry` reads."""
    from ui.cli import snapshot as command

    raise typer.Exit(command.run(watch, out, since))


@app.command(short_help="Let a folder's file of settings count, as it is now.")
def allow(file: SettingsFile = None, forget: ForgetFile = False, yes: WithoutAsking = False) -> None:
    """Show what a folder's whycrash.toml sets, and let it count until it changes; without FILE, list all."""
    from ui.cli import allow as command

    raise typer.Exit(command.run(file, forget=forget, sure=yes))


@app.command(short_help="Check what is installed and reachable.")
def doctor() -> None:
    """Check what is installed, found and reachable, and say how to mend what is not."""
    from ui.cli import doctor as command

    raise typer.Exit(command.run())


@app.command(short_help="Write your own file of settings, with every one explained.")
def init(shown: ShowSettings = False, lang: Lang = "") -> None:
    """Write your own file of settings, in which every one is explained and none is set."""
    from ui.cli import init as command

    raise typer.Exit(command.run(shown=shown, lang=lang))


@app.command(short_help="Gather what tells of a dead or hanging job into one archive.")
def collect(
    logs: Logs = None,
    job: BundleJob = "",
    out: BundleFile = None,
    issue: AsIssue = False,
    config: ConfigFiles = None,
    lang: Lang = "",
) -> None:
    """Gather logs, stacks, dumps, what machine and scheduler say, by commands that only read; no secrets."""
    from ui.cli import collect as command

    raise typer.Exit(command.run(logs or [], job, out, config or [], lang, issue=issue))


@app.command(short_help="Print the lines that install whycrash where jobs run.")
def hook(place: HookPlace, lang: Lang = "") -> None:
    """Print the lines that install whycrash where jobs run; nothing is changed."""
    from ui.cli import hook as command

    raise typer.Exit(command.run(place, lang))


@app.command(short_help="Print a shell's completion script.")
def completion(shell: ShellName) -> None:
    """Print the script by which a shell completes commands and options."""
    from ui.cli import completion as command

    raise typer.Exit(command.run(shell))


@corpus_app.command()
def lint() -> None:
    """Check causes, cases, settings and patterns."""
    from ui.cli import corpus as command

    raise typer.Exit(command.lint())


@corpus_app.command()
def stats(
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as one JSON object.")] = False,
) -> None:
    """Count causes, cases, settings, patterns and sources."""
    from ui.cli import corpus as command

    raise typer.Exit(command.stats(as_json=as_json))


@corpus_app.command()
def show(
    case_id: Annotated[
        str, typer.Argument(metavar="ID", help="A case's id, such as verl/batch-not-divisible.")
    ],
    lang: Lang = "",
) -> None:
    """Show one case."""
    from ui.cli import corpus as command

    raise typer.Exit(command.show(case_id, lang))


@corpus_app.command(short_help="Draft a case from a log whose real cause you know.")
def draft(
    log: Annotated[Path, typer.Argument(metavar="FILE", help="A log whose triage was wrong or incomplete.")],
    cause: Annotated[
        str, typer.Option("--cause", metavar="ID", help="The real cause, an id of corpus/causes.yaml.")
    ],
    fix: Annotated[str, typer.Option("--fix", metavar="TEXT", help="What fixed it, in a sentence.")] = "",
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the drafts.")] = Path(
        "out/draft"
    ),
) -> None:
    """Draft a case and an incident from a log whose real cause you know; finish and lint them by hand."""
    from ui.cli import corpus as command

    raise typer.Exit(command.draft(log, cause, fix, out))


def main() -> None:
    """Run the command; an error becomes one sentence on standard error and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a sign gets a question mark, not a traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    if COMPLETES in os.environ:
        # A shell asks what may follow; else nobody waits for what knows of shells.
        from typer.completion import completion_init  # type: ignore[attr-defined]  # it is made elsewhere

        completion_init()
    try:
        app()
    except (CorpusError, EvalError, IngestError, ServiceError) as error:
        from ingest.logs.lines import printable
        from ui import sentences
        from ui.cli.console import spoken

        sys.stderr.write(f"whycrash: {printable(sentences.error_sentence(error, spoken(sys.argv[1:])))}\n")
        sys.exit(MISUSE)
    except ModuleNotFoundError as error:
        from ingest.extras import missing
        from ui.cli.console import spoken

        if (said := missing(error)) is None:
            raise
        sys.stderr.write(f"whycrash: {said.in_language(spoken(sys.argv[1:]))}\n")
        sys.exit(MISUSE)
    except KeyboardInterrupt:
        sys.stderr.write("whycrash: stopped.\n")
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output (head, less) went away: not an error of ours.
        sys.stderr.close()
        sys.exit(0)


if __name__ == "__main__":
    main()
