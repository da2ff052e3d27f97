import json,subprocess,sys
from pathlib import Path
root=Path(sys.argv[1])
fs=[f for f in subprocess.run(["git","ls-files","tests/*.py"],cwd=root,capture_output=True,text=True).stdout.split()]
D={"tests/service/batch/":"tests/service/batches/","tests/service/store/":"tests/service/persistence/","tests/service/watching/":"tests/service/monitoring/"}
S={  # tests/service/x -> package
"answering":"llm/answering","injections":"llm/injections","scripted":"llm/scripted","applying":"patching/applying",
"test_advice":"remediation/test_message_hints","test_named_settings":"remediation/test_named_settings","test_changes":"remediation/test_changes","test_feasibility":"remediation/test_feasibility",
"test_incident_changes":"remediation/test_incident_changes","test_remedies":"remediation/test_remedies","test_renames":"remediation/test_renames","test_values":"remediation/test_values",
"test_candidates":"scoring/test_scoring","test_retrieval":"scoring/test_retrieval",
"test_composer":"composition/test_composer","test_chinese":"composition/test_chinese","test_reasons":"composition/test_reasons","test_outcome":"composition/test_job_end","test_verdicts":"composition/test_verdicts",
"test_chain":"llm/test_chain","test_conversation":"llm/test_conversation","test_fencing":"llm/test_prompt_injection","test_grounding":"llm/test_grounding","test_injections":"llm/test_injections","test_models":"llm/test_models",
"test_partial":"llm/test_streaming_json","test_prompting":"llm/test_prompt","test_sentences":"llm/test_claim_verifier","test_real_server":"llm/test_real_server",
"test_desk":"app/test_triage_service","test_diagnosis":"schemas/test_diagnosis","test_excerpts":"pipeline/test_excerpts","test_lint":"pipeline/test_lint","test_triage":"pipeline/test_triage","test_several_files":"pipeline/test_several_files","test_redaction":"pipeline/test_redaction",
"test_incident_patches":"patching/test_incident_patches","test_json_patch":"patching/test_json_patch","test_manifest_patch":"patching/test_manifest_patch","test_patch":"patching/test_patch","test_requirements_patch":"patching/test_requirements_patch","test_shell_patch":"patching/test_shell_patch","test_yaml_patch":"patching/test_yaml_patch",
}
N={ # in sub packages, renamed
"tests/service/api/test_gate":"tests/service/api/test_middleware","tests/service/api/test_buckets":"tests/service/api/test_rate_limiter",
"tests/service/persistence/test_gate":"tests/service/persistence/test_sanitizer","tests/service/monitoring/test_copy":"tests/service/monitoring/test_log_buffer","tests/service/monitoring/test_sampling":"tests/service/monitoring/test_sampler",
"tests/service/telemetry/test_taking":"tests/service/telemetry/test_collectors","tests/service/telemetry/test_weigh":"tests/service/scoring/test_telemetry_evidence","tests/service/workers/test_line":"tests/service/workers/test_queue",
"tests/service/batches/test_on_ray":"tests/service/batches/test_ray_executor","tests/ui/test_ending":"tests/ui/cli/test_signals",
}
I={}
for n in "archives sources sockets unwhole".split(): I[n]="logs/inputs/test_"+n
for n in "cascade clock conditions events facts last_words levels lines patterns phases ranks reader repeats sampling scanner templates timeline hostile linear fuzz".split(): I[n]="logs/test_"+n
for n in "cut_stacks native tracebacks".split(): I[n]="logs/stacks/test_"+n
I["blame"]="logs/stacks/test_exception_classifier"; I["unfinished"]="logs/stacks/test_open_tracebacks"
for n in "dumps launch launch_secrets".split(): I[n]="logs/configs/test_"+n
for n in "redaction redaction_jobs".split(): I[n]="redaction/test_"+n
I["redact"]="redaction/test_redactor"; I["lexical"]="test_word_index"; I["many"]="test_bulk_ingest"
out={}
for f in fs:
    m=f[:-3]
    for a,b in D.items():
        if m.startswith(a): m=b+m[len(a):]
    p=Path(m)
    if str(p.parent)=="tests/service" and p.name in S: m="tests/service/"+S[p.name]
    if str(p.parent)=="tests/ingest" and p.name.startswith("test_") and p.name[5:] in I: m="tests/ingest/"+I[p.name[5:]]
    if str(p.parent)=="tests/ingest" and ("redact" in p.name or "secret" in p.name) and p.name!="test_launch_secrets" and p.name[5:] not in I: m="tests/ingest/redaction/"+p.name
    if m in("tests/ingest/planted","tests/ingest/planted_jobs"): m="tests/ingest/redaction/"+p.name
    m=N.get(m,m)
    if str(Path(m).parent)=="tests/ui" and Path(m).name.startswith("test_") and Path(m).name[5:] in "batch commands explain explain_model keys run snapshot steps serve several_files hostile_folder".split(): m="tests/ui/cli/"+Path(m).name
    if m!=f[:-3] and not m.endswith("__init__"): out[f[:-3].replace("/",".")]=m.replace("/",".")
    if m.endswith("__init__") and m!=f[:-3]: out[f[:-3].replace("/",".")]=m.replace("/",".")
json.dump(out,open("rename/testmods.json","w"),indent=1,sort_keys=True)
for m in sorted({v.rpartition(".")[0] for v in out.values()}):
    d=root/m.replace(".","/"); d.mkdir(parents=True,exist_ok=True)
    if not (d/"__init__.py").exists() and f"{m}.__init__" not in out.values(): (d/"__init__.py").write_text(""); subprocess.run(["git","add",str(d/"__init__.py")],cwd=root)
print(len(out))
