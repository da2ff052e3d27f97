"""move.py ROOT MAP.json: MAP {old.dotted.module: new.dotted.module} (packages too: moves folders by listing each module). Rewrites imports."""
import ast, json, subprocess, sys, re
from pathlib import Path
ROOT=Path(sys.argv[1]).resolve(); MAP=json.load(open(sys.argv[2])); MAP={k:v for k,v in MAP.items() if k!=v}
def fpath(m):
    p=ROOT/(m.replace(".","/")+".py")
    return p
files=[ROOT/f for f in subprocess.run(["git","ls-files","*.py"],cwd=ROOT,capture_output=True,text=True).stdout.split() if "lab/experiments" not in f and "incidents/" not in f]
def names_in(tree):
    out=set()
    for n in ast.walk(tree):
        if isinstance(n,ast.Name): out.add(n.id)
        elif isinstance(n,ast.arg): out.add(n.arg)
        elif isinstance(n,(ast.FunctionDef,ast.ClassDef,ast.AsyncFunctionDef)): out.add(n.name)
        elif isinstance(n,ast.alias): out.add((n.asname or n.name).split(".")[0])
    return out
def rewrite(p):
    src=p.read_text(); tree=ast.parse(src); lines=src.split("\n")
    # byte offsets
    edits=[] # (line0,col,endline0,endcol,new)  cols in str idx
    def c(line,col): return len(lines[line].encode()[:col].decode())
    renames={} ; existing=names_in(tree); dotted_uses=[]
    for n in ast.walk(tree):
        if isinstance(n,ast.ImportFrom) and n.module and n.level==0:
            base=MAP.get(n.module,n.module); groups={}; touched=n.module in MAP
            for a in n.names:
                full=f"{n.module}.{a.name}"
                if full in MAP:
                    touched=True
                    npk,_,nm=MAP[full].rpartition(".")
                    asn=a.asname
                    if asn is None and nm!=a.name:
                        if nm in existing:
                            print(f"CONFLICT {p.relative_to(ROOT)}: {nm} (was {a.name}); kept alias"); asn=a.name
                        else: renames[a.name]=nm
                    if asn==nm: asn=None
                    groups.setdefault(npk,[]).append(nm+(f" as {asn}" if asn else ""))
                else:
                    groups.setdefault(base,[]).append(a.name+(f" as {a.asname}" if a.asname else ""))
            if touched:
                ind=" "*n.col_offset
                text=[]
                for g,ns in groups.items():
                    one=f"from {g} import {', '.join(ns)}"
                    if len(one)+len(ind)>110: one=f"from {g} import (\n"+"".join(f"{ind}    {x},\n" for x in ns)+f"{ind})"
                    text.append(one)
                edits.append((n.lineno-1,c(n.lineno-1,n.col_offset),n.end_lineno-1,c(n.end_lineno-1,n.end_col_offset),("\n"+ind).join(text)))
        elif isinstance(n,ast.Import):
            for a in n.names:
                if a.name in MAP:
                    edits.append((n.lineno-1,c(n.lineno-1,a.col_offset),n.lineno-1,c(n.lineno-1,a.end_col_offset),MAP[a.name]+(f" as {a.asname}" if a.asname else "")))
                    if not a.asname: dotted_uses.append(a.name)
    if renames:
        for n in ast.walk(tree):
            if isinstance(n,ast.Name) and n.id in renames:
                edits.append((n.lineno-1,c(n.lineno-1,n.col_offset),n.lineno-1,c(n.lineno-1,n.end_col_offset),renames[n.id]))
    for (l,s,el,e,new) in sorted(edits,reverse=True):
        head=lines[l][:s]; tail=lines[el][e:]
        lines[l:el+1]=(head+new+tail).split("\n")
    out="\n".join(lines)
    # dotted names in strings and the text otherwise
    if out!=src: p.write_text(out)
for p in files: rewrite(p)
# dotted references in strings, docs, toml; longest first
text_files=[ROOT/f for f in subprocess.run(["git","ls-files"],cwd=ROOT,capture_output=True,text=True).stdout.split("\n") if f.endswith((".py",".md",".toml",".yaml",".yml",".cfg",".sh",".ini",".mako",".json")) and "incidents/" not in f and "corpus/cases" not in f and "knobs/" not in f or f in("Makefile",".ci/run")]
keys=sorted(MAP,key=len,reverse=True)
dot=re.compile(r"(?<![\w./])("+"|".join(re.escape(k) for k in keys)+r")(?![\w])")
path=re.compile(r"(?<![\w])("+"|".join(re.escape(k.replace(".","/")) for k in keys)+r")\.py\b")
for p in text_files:
    if not p.exists(): continue
    s=p.read_text()
    t=dot.sub(lambda m:MAP[m.group(1)],s)
    t=path.sub(lambda m:MAP[m.group(1).replace("/",".")].replace(".","/")+".py",t)
    if t!=s: p.write_text(t)
for old,new in MAP.items():
    a,b=fpath(old),fpath(new)
    if not a.exists(): print("MISSING",a); continue
    b.parent.mkdir(parents=True,exist_ok=True)
    if not (b.parent/"__init__.py").exists() : print("NEED __init__",b.parent)
    subprocess.run(["git","mv",str(a),str(b)],cwd=ROOT,check=True)
