import ast,sys,json
from pathlib import Path
from collections import defaultdict
root=Path(sys.argv[1]); MAP=json.load(open(sys.argv[2])) if len(sys.argv)>2 else {}
mods={}
for p in (root/"service").rglob("*.py"):
    m=".".join(p.relative_to(root).with_suffix("").parts)
    if m.endswith("__init__"): continue
    mods[m]=p
def target(n,x):
    f=f"{n}.{x}"
    return f if f in mods else (n if n in mods else None)
E=defaultdict(set)
for m,p in mods.items():
    for n in ast.walk(ast.parse(p.read_text())):
        if isinstance(n,ast.ImportFrom) and n.module and n.module.startswith("service"):
            for a in n.names:
                t=target(n.module,a.name)
                if t: E[m].add(t)
new=lambda m:MAP.get(m,m)
pk=lambda m:".".join(new(m).split(".")[:2])
G=defaultdict(lambda: defaultdict(list))
for a in E:
    for b in E[a]:
        if pk(a)!=pk(b): G[pk(a)][pk(b)].append((new(a),new(b)))
order=sys.argv[3].split(",") if len(sys.argv)>3 else sorted(G)
pos={f"service.{o}":i for i,o in enumerate(order)}
for a in sorted(G,key=lambda x:pos.get(x,99)):
    for b in sorted(G[a],key=lambda x:pos.get(x,99)):
        back = pos.get(a,99)<=pos.get(b,99)
        print(("BACK " if back else "     ")+a,"->",b,len(G[a][b]), (["%s>%s"%(x.split('.',1)[1],y.split('.',1)[1]) for x,y in G[a][b]] if back else ""))
