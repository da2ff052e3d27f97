import ast,re,sys,collections
from pathlib import Path
root=Path(sys.argv[1]); V="-v" in sys.argv
fs=[p for f in ["corpus","ingest","service","eval","ui","whycrash"] for p in sorted((root/f).rglob("*.py")) if "experiments" not in str(p) and "incidents" not in str(p)]
T={p:p.read_text() for p in fs}
funcs=[];single=[];long_lines=0;classes=collections.defaultdict(list);ll=collections.Counter()
for p,t in T.items():
    tree=ast.parse(t); w=collections.Counter(re.findall(r"[A-Za-z_]\w*",t))
    for i,l in enumerate(t.split("\n")):
        if len(l)>110: long_lines+=1; ll[str(p.relative_to(root))]+=1
    for n in ast.walk(tree):
        if isinstance(n,(ast.FunctionDef,ast.AsyncFunctionDef)):
            k=n.end_lineno-n.lineno+1; funcs.append((k,str(p.relative_to(root)),n.name))
            if n.name.startswith("_") and not n.name.startswith("__") and w[n.name]==2 and k<=6:
                single.append((str(p.relative_to(root)),n.lineno,n.name,k))
        if isinstance(n,ast.ClassDef): classes[(n.name,p.relative_to(root).parts[0])].append(str(p.relative_to(root)))
s=sorted(k for k,_,_ in funcs)
print("functions",len(s),"median",s[len(s)//2],"p90",s[int(len(s)*.9)],"max",s[-1], "over 60:",[x for x in funcs if x[0]>60])
print("private single-use <=6 lines:",len(single)); print("lines>110:",long_lines)
print("duplicate classes:",{k:v for k,v in classes.items() if len(v)>1} if V else sum(len(v)>1 for v in classes.values()))
if V:
    c=collections.Counter(x[0] for x in single); print(c.most_common(30)); print(ll.most_common(20))
