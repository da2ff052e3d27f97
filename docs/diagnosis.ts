// Made of diagnosis.schema.json by `python -m ui.docs`.

/**
 * The whole answer. `cause` is None where nothing failed. Its `standing` is `established` then only where
 * the log shows a good end. `patch` and `command` are of the first change, `suggestion` a diff of Python
 * code. `steps` act on no file; `seconds` is how long the job printed. `fingerprint` is equal for crashes
 * of a kind, empty where nothing failed.
 */
export interface Diagnosis {
  schema: "whycrash.diagnosis/1";
  id: string;
  source: string;
  verdict: "diagnosed" | "ambiguous" | "unknown" | "no-failure";
  cause: string | null;
  category: string | null;
  confidence: number;
  standing: "established" | "supported" | "hypothesis" | "none";
  action: "retry" | "change-config" | "change-environment" | "fix-code" | "fix-data" | "replace-hardware" | "collect-more" | "none";
  alternatives: Alternative[];
  headline: string;
  explanation: string;
  evidence: Evidence[];
  sources: SourcePlace[];
  statements: ReadStatement[];
  cascade: CascadeEntry[];
  cases: CaseHit[];
  changes: ProposedChange[];
  patch: string | null;
  suggestion: string | null;
  command: string | null;
  steps: ProcedureStep[];
  checks: string[];
  telemetry: Telemetry;
  frameworks: SeenFramework[];
  curves: Curve[];
  engine: Engine;
  outcome: Outcome;
  resumption: Resumption | null;
  seconds: number | null;
  fingerprint: string;
  confirmed: Confirmation | null;
  redactions: number;
  limits: ReadLimits;
  timings_ms: Record<string, number>;
  job: JobNote | null;
}

/** Another cause that the evidence allows, and what would tell it apart. */
export interface Alternative {
  cause: string;
  confidence: number;
  tell_apart: string;
}

/**
 * One kind of event in the order of their first lines; `missing_ranks` are those that did not say it. Of
 * these, `silent_ranks` tell of no other failure either. `earlier_run` tells that another run said it,
 * which had ended before the file's last one began.
 */
export interface CascadeEntry {
  line: number;
  time: string | null;
  source: string;
  event: string;
  role: "root" | "collateral" | "recovered" | "teardown";
  count: number;
  file: string | null;
  missing_ranks: number[];
  silent_ranks: number[];
  earlier_run: boolean;
}

/** A retrieved case, note or past report. */
export interface CaseHit {
  id: string;
  title: string;
  score: number;
  urls: string[];
  kind: "case" | "note" | "report";
  fix: string;
}

/** What the machine says of one cause, by which rules, from which readings. */
export interface CauseTelemetry {
  cause: string;
  says: "agrees" | "contradicts" | "neither" | "not available";
  why: string;
  rules: string[];
  readings: TelemetryReading[];
}

/**
 * What a person said of the same crash before: its cause, when, and whether that made a difference. It
 * counts as one sign, and never against a cause that the log itself states.
 */
export interface Confirmation {
  cause: string;
  on: string;
  counted: boolean;
}

/**
 * How a number went that the job printed or logged over its steps, by a part of its points. `points` are
 * steps with values, None where one is no finite number; `counts_steps` tells whether they stand at steps,
 * else at lines. `finding` says what went wrong in it: it stayed no finite number, stayed at nothing,
 * leapt, grew all along, or steps took a multiple; `since` is the step and `line` the line from which on,
 * `before` the value until then, and `full_at` the step at which what grows would reach the machine's
 * limit. `source` is the rank or process that is behind the others.
 */
export interface Curve {
  name: string;
  points: unknown[][];
  counts_steps: boolean;
  finding: "broken" | "zero" | "jump" | "rise" | "slow" | "behind" | null;
  since: number | null;
  line: number | null;
  file: string | null;
  before: number | null;
  full_at: number | null;
  source: string | null;
}

/** A claim that did not pass grounding, and why. */
export interface Dropped {
  what: string;
  why: string;
  /** Of each text that is a message, by its field: the message's id and values, to be told in any language. */
  messages?: Record<string, MessageReference>;
}

/**
 * What wrote the answer. `note` says what became of a model that was asked; `omitted` counts what its
 * prompt had no room for, by kind. `model_explanation` is what passed its checks of the model's own words,
 * Markdown that cites as the explanation does; it stands beside the rules' headline and explanation, which
 * no model writes. `trace` holds its looks, in their order.
 */
export interface Engine {
  name: string;
  model_explanation: string;
  votes: Votes | null;
  dropped: Dropped[];
  note: string;
  tokens: Tokens | null;
  omitted: Record<string, number>;
  trace: TraceStep[];
}

/**
 * A line of the log that the answer rests on, redacted; `file` names it where there are several. `below`
 * are the first rows of its message below it, where it announces them and says no reason itself.
 */
export interface Evidence {
  line: number;
  text: string;
  role: "root" | "collateral" | "context";
  why: string;
  file: string | null;
  below: string[];
}

/**
 * Which job of a batch an answer is for. `same_as` names the job of the same crash that was triaged in its
 * stead, whose lines the explanation cites; `error` says why there is no answer; `gpu_hours` are those
 * that the job held, where they were given.
 */
export interface JobNote {
  id: string;
  batch: string;
  name: string;
  state: "done" | "failed" | "cancelled";
  fingerprint: string;
  same_as: string | null;
  error: string;
  attempts: number;
  nodes: number | null;
  gpu_hours: number | null;
  ended: string | null;
  /** Of each text that is a message, by its field: the message's id and values, to be told in any language. */
  messages?: Record<string, MessageReference>;
}

/** A message as it crosses a border: its id in the catalogue, and its values. */
export interface MessageReference {
  message: string;
  values: Record<string, number | string | MessageReference>;
}

/**
 * How the job ended as its caller knows it, and how far its log shows it came; None is not known. `state`
 * is that of a scheduler, pod or job, as it was given.
 */
export interface Outcome {
  exit_code: number | null;
  signal: string | null;
  state: string | null;
  last_step: number | null;
  last_checkpoint: number | null;
}

/**
 * A command of a procedure: it only looks, or it `acts`, and then says what that costs. Words in capitals
 * are for the reader to fill in.
 */
export interface ProcedureStep {
  run: string;
  why: string;
  costs: string;
  acts: boolean;
}

/**
 * One change of the job's configuration. `replaces` names the key that the job sets in vain: it is to go,
 * and `key` takes its place. `removes` tells that `key` itself is to go, and nothing takes its place; `to`
 * says so in words. `goes_with` names the change without which this one makes no sense. `purpose` tells a
 * change that can cure from one that only helps to find out; `proof` is the log's own arithmetic by which
 * the value suffices, where there is any, and `bounds` what it asks of any value, where it is of such a
 * kind. `tier` is how firmly it stands, the lowest first: changes of one tier are equally good. `guess`
 * tells that nothing in this job calls for it but the cause, and that few such changes were right: it is
 * told behind the others and never written to a file; `is_bare` only that the cause alone calls for it and
 * that the job is not seen to set it. A change of the kind `code` is for the job's own source: `key` is
 * the place, `to` says what to do there. `by` tells who proposes it: of what a model proposes, only what
 * is verified is ever written to a file.
 */
export interface ProposedChange {
  framework: string;
  kind: "setting" | "env" | "flag" | "package" | "command" | "code";
  key: string;
  from: string | null;
  to: boolean | number | string;
  why: string;
  costs: string;
  from_case: string | null;
  status: "verified" | "unverified";
  replaces: string | null;
  removes: boolean;
  goes_with: string | null;
  purpose: "cure" | "find-out";
  proof: string | null;
  bounds: ValueBounds | null;
  guess: boolean;
  by: "rules" | "model";
}

/** How much of the log was read; `cut` tells that the end of a log was not seen. */
export interface ReadLimits {
  bytes: number;
  lines: number;
  truncated: boolean;
  cut: boolean;
  omitted: Record<string, number | string>;
}

/**
 * What the code on the machine says of a call of the failing stack. `line` and `file` are the log's;
 * `path`, `source_line` and `symbol` the call's. `statement` stands there and is reached only if the
 * `conditions` hold, the nearest first; `settings` are those that they read, or that its message names.
 * `standing` is `other-version` where the file at hand says something else there than the traceback, and
 * `not-parsed` where it could not be read.
 */
export interface ReadStatement {
  line: number;
  file: string | null;
  path: string;
  source_line: number;
  symbol: string;
  standing: "read" | "other-version" | "not-parsed";
  statement: string;
  conditions: string[];
  settings: string[];
}

/**
 * From where a dead job can go on: its last whole checkpoint, by the line that tells of it. `step` is its
 * own, `lost` how many were made after it (None: not counted), `how` what one writes to go on.
 */
export interface Resumption {
  checkpoint: string;
  line: number;
  file: string | null;
  step: number | null;
  lost: number | null;
  framework: string;
  how: string;
}

/** A framework that the log shows. */
export interface SeenFramework {
  name: string;
  version: string | null;
  line: number;
  file: string | null;
}

/**
 * Where a framework's own source tells what a line of the log says. `line` and `file` are the log's.
 * `path`, `source_line` and `symbol` are the place at `version`, which is the job's where that was read,
 * `url` its address; `versions` leaves out the versions known to lack it. `settings` are those that the
 * condition before it reads, or that the message names.
 */
export interface SourcePlace {
  line: number;
  file: string | null;
  package: string;
  versions: string;
  version: string;
  path: string;
  source_line: number;
  symbol: string;
  exception: string;
  settings: string[];
  url: string | null;
}

/** What the machine says of the named cause, and of each other one. What was not measured is never fine. */
export interface Telemetry {
  says: "agrees" | "contradicts" | "neither" | "not available";
  why: string;
  taken_at: string | null;
  sources: string[];
  causes: CauseTelemetry[];
}

/** A reading of the machine that an answer rests on: its value, or why it is not available. */
export interface TelemetryReading {
  name: string;
  value: boolean | number | string | null;
  unavailable: string | null;
  /** Of each text that is a message, by its field: the message's id and values, to be told in any language. */
  messages?: Record<string, MessageReference>;
}

/**
 * What a model read and wrote, in its tokens. `counted` is False where the provider tells none and it is
 * an estimate.
 */
export interface Tokens {
  sent: number;
  received: number;
  counted: boolean;
}

/** A look of a model into the log or what is known: the tool, what it was asked for, what was found. */
export interface TraceStep {
  tool: string;
  arguments: Record<string, string>;
  found: string;
  /** Of each text that is a message, by its field: the message's id and values, to be told in any language. */
  messages?: Record<string, MessageReference>;
}

/** What the log's own arithmetic asks of any value of a setting, beside the one that is proposed. */
export interface ValueBounds {
  at_most: number | null;
  at_least: number | null;
  multiple_of: number | null;
}

/**
 * What the rules and a model each held for the cause, with probabilities. A model's is that with which
 * votes of its certainty were right on labelled incidents. `insufficient-evidence` stands for a log that
 * does not tell, `no-failure` for a sound run.
 */
export interface Votes {
  rules: Record<string, number>;
  model: Record<string, number>;
}
