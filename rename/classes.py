"""classren.py ROOT MAP.json (file, Class, New). Module-level class renames by import resolution."""
import ast, json, subprocess, sys
from pathlib import Path
from collections import defaultdict
ROOT=Path(sys.argv[1]).resolve(); rows=json.load(open(sys.argv[2]))
M=defaultdict(dict)
for f,o,n in rows:
    if "." in o: continue
    if not (ROOT/f).exists(): print("MISSING",f,o); continue
    t=ast.parse((ROOT/f).read_text())
    tops={x.name for x in t.body if isinstance(x,ast.ClassDef)}
    if o not in tops: print("NOCLASS",f,o); continue
    M[f[:-3].replace("/",".")][o]=n
files=[ROOT/f for f in subprocess.run(["git","ls-files","*.py"],cwd=ROOT,capture_output=True,text=True).stdout.split() if "lab/experiments" not in f and "incidents/" not in f]
mods={".".join(p.relative_to(ROOT).with_suffix("").parts) for p in files}
total=0
for p in files:
    src=p.read_text(); tree=ast.parse(src); me=".".join(p.relative_to(ROOT).with_suffix("").parts)
    lines=[l.encode() for l in src.split("\n")]
    names=dict(M.get(me,{})); modnames={}; edits=[]
    allnames={n.id for n in ast.walk(tree) if isinstance(n,ast.Name)}|{n.name for n in ast.walk(tree) if isinstance(n,ast.ClassDef)}
    for n in ast.walk(tree):
        if isinstance(n,ast.ImportFrom) and n.module and n.level==0:
            for a in n.names:
                if a.name in M.get(n.module,{}):
                    new=M[n.module][a.name]
                    edits.append((a.lineno-1,a.col_offset,a.name,new))
                    if not a.asname: names[a.name]=new
                elif f"{n.module}.{a.name}" in M: modnames[a.asname or a.name]=f"{n.module}.{a.name}"
    for old,new in names.items():
        if new in allnames: print("CONFLICT",p.relative_to(ROOT),old,new)
    # within-file collisions: two imports with same name
    for n in ast.walk(tree):
        if isinstance(n,ast.Name) and n.id in names: edits.append((n.lineno-1,n.col_offset,n.id,names[n.id]))
        elif isinstance(n,ast.ClassDef) and n in tree.body and n.name in M.get(me,{}):
            col=lines[n.lineno-1].index(b"class ")+6
            edits.append((n.lineno-1,col,n.name,names[n.name]))
        elif isinstance(n,ast.Attribute) and isinstance(n.value,ast.Name) and n.value.id in modnames and n.attr in M[modnames[n.value.id]]:
            edits.append((n.end_lineno-1,n.end_col_offset-len(n.attr.encode()),n.attr,M[modnames[n.value.id]][n.attr]))
        elif isinstance(n,ast.Constant) and isinstance(n.value,str) and n.value in names and n.value not in("",): print("STRING",p.relative_to(ROOT),n.lineno,n.value)
    for l,c,o,new in sorted(set(edits),reverse=True):
        assert lines[l][c:c+len(o.encode())]==o.encode(),(p,l,c,o,lines[l])
        lines[l]=lines[l][:c]+new.encode()+lines[l][c+len(o.encode()):]; total+=1
    if edits: p.write_bytes(b"\n".join(lines))
print(total,"edits")
