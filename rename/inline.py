"""inline.py ROOT [--dry] files...: inline private single-use functions of six lines or fewer where it is safe and stays readable."""
import ast, sys, re, subprocess, builtins
from pathlib import Path
from collections import Counter
import libcst as cst
import libcst.matchers as m
ROOT=Path(sys.argv[1]).resolve(); DRY="--dry" in sys.argv
LIMIT=6; MAXLEN=230; MAXFUNC=int(next((a.split("=")[1] for a in sys.argv if a.startswith("--maxfunc=")),45))
files=[ROOT/f for f in subprocess.run(["git","ls-files","*.py"],cwd=ROOT,capture_output=True,text=True).stdout.split() if "lab/experiments" not in f and "incidents/" not in f]
TEXT={}
def elsewhere(p,name):
    rel=str(p.relative_to(ROOT))[:-3]; mod=rel.replace("/","."); pk,_,last=mod.rpartition(".")
    for q,t in TEXT.items():
        if q!=p and name in t and re.search(rf"\b{name}\b",t) and (mod in t or rel in t or re.search(rf"from {re.escape(pk)} import [^\n]*\b{last}\b",t)): return True
    return False
def words():
    for p in files: TEXT[p]=p.read_text()
    c=Counter()
    for p in files: c.update(re.findall(r"[A-Za-z_]\w*",p.read_text()))
    for p in subprocess.run(["git","ls-files","*.yaml","*.toml","*.md"],cwd=ROOT,capture_output=True,text=True).stdout.split():
        if "incidents/" in p or "cases/" in p or "knobs" in p or "settings/" in p: continue
        try: c.update(re.findall(r"[A-Za-z_]\w*",(ROOT/p).read_text()))
        except OSError: pass
    return c
SIMPLE=(ast.Name,ast.Constant)
def is_simple(n):
    if isinstance(n,ast.Constant): return not isinstance(n.value,str) or len(n.value)<30
    if isinstance(n,ast.Name): return True
    return isinstance(n,ast.Attribute) and is_simple(n.value)
def names(n): return {x.id for x in ast.walk(n) if isinstance(x,ast.Name)}
def stored(n):
    out=set()
    for x in ast.walk(n):
        if isinstance(x,ast.Name) and isinstance(x.ctx,(ast.Store,ast.Del)): out.add(x.id)
        if isinstance(x,ast.ExceptHandler) and x.name: out.add(x.name)
        if isinstance(x,ast.arg): out.add(x.arg)
    return out
class Sub(ast.NodeTransformer): pass
ATOM=(ast.Name,ast.Attribute,ast.Call,ast.Subscript,ast.Constant,ast.List,ast.Dict,ast.Set,ast.ListComp,ast.SetComp,ast.DictComp,ast.JoinedStr)
def src_of(lines,n):
    """source text of an ast node from lines (list of str)"""
    if n.lineno==n.end_lineno:
        b=lines[n.lineno-1].encode(); return b[n.col_offset:n.end_col_offset].decode()
    parts=[lines[n.lineno-1].encode()[n.col_offset:].decode()]+lines[n.lineno:n.end_lineno-1]+[lines[n.end_lineno-1].encode()[:n.end_col_offset].decode()]
    return "\n".join(parts)
def substitute(text, base, subs):
    """replace Name nodes (by ast offsets relative to expression text) -> subs; base = ast expr parsed from '('+text+')'"""
    pass
def expr_with(text,subs):
    wrapped="("+text+"\n)"
    t=ast.parse(wrapped,mode="eval")
    lines=wrapped.split("\n"); edits=[]
    for n in ast.walk(t):
        if isinstance(n,ast.Name) and n.id in subs: edits.append((n.lineno-1,n.col_offset,len(n.id.encode()),subs[n.id]))
    for l,c,k,new in sorted(edits,reverse=True):
        b=lines[l].encode(); lines[l]=(b[:c]+new.encode()+b[c+k:]).decode()
    out="\n".join(lines)[1:]
    return out[:-2] if out.endswith("\n)") else out[:-1]
class Fail(Exception): pass
OVERRIDE={}
def bind(fn,call,is_method,lines):
    a=fn.args
    if a.vararg or a.kwarg or a.posonlyargs: raise Fail("star")
    params=[x.arg for x in a.args]; 
    if is_method: params=params[1:]
    kw=[x.arg for x in a.kwonlyargs]
    got={}
    if any(isinstance(x,ast.Starred) for x in call.args) or any(k.arg is None for k in call.keywords): raise Fail("starcall")
    if len(call.args)>len(params): raise Fail("args")
    for p,x in zip(params,call.args): got[p]=x
    for k in call.keywords: got[k.arg]=k.value
    ds=a.defaults
    allp=[x.arg for x in a.args]
    for p,d in zip(allp[len(allp)-len(ds):],ds): got.setdefault(p,d) 
    for x,d in zip(a.kwonlyargs,a.kw_defaults):
        if d is not None: got.setdefault(x.arg,d)
    if set(got)!=set(params+kw): raise Fail("missing")
    return got
def process(p,count):
    changed=0; skip=set()
    while True:
        src=p.read_text(); tree=ast.parse(src); lines=src.split("\n")
        parents={}
        for n in ast.walk(tree):
            for c in ast.iter_child_nodes(n): parents[c]=n
        done=False
        cands=[]
        own=Counter(re.findall(r"[A-Za-z_]\w*",src))
        for n in ast.walk(tree):
            if isinstance(n,ast.FunctionDef) and n.name.startswith("_") and not n.name.startswith("__") and n.name not in skip:
                par=parents[n]
                is_method=isinstance(par,ast.ClassDef)
                if not (isinstance(par,ast.Module) or is_method): continue
                if n.end_lineno-n.lineno+1>LIMIT or n.decorator_list: continue
                if own[n.name]!=2 or elsewhere(p,n.name): continue
                cands.append((n,is_method,par))
        for fn,is_method,par in cands:
            try:
                new=inline_one(src,lines,tree,parents,fn,is_method,par)
                ast.parse(new)
                # no-op check of longest line
                p.write_text(new) if not DRY else None
                changed+=1; done=True
                if DRY: skip.add(fn.name)
                break
            except Fail as e:
                skip.add(fn.name); STAT[str(e)]+=1
            except SyntaxError as e:
                skip.add(fn.name); STAT["syntax"]+=1
        if not done: return changed
STAT=Counter()
def body_of(fn):
    b=fn.body; doc=None
    if b and isinstance(b[0],ast.Expr) and isinstance(b[0].value,ast.Constant) and isinstance(b[0].value.value,str): doc=b[0].value.value; b=b[1:]
    return doc,b
def stmt_of(n,parents):
    chain=[]
    while not isinstance(n,ast.stmt): chain.append(n); n=parents[n]
    return n,chain
def func_of(n,parents):
    while n is not None and not isinstance(n,(ast.FunctionDef,ast.AsyncFunctionDef)): n=parents.get(n)
    return n
def inline_one(src,lines,tree,parents,fn,is_method,par):
    if any(isinstance(x,(ast.Yield,ast.YieldFrom,ast.Await,ast.Global,ast.Nonlocal,ast.Lambda,ast.FunctionDef,ast.NamedExpr)) for b in fn.body for x in ast.walk(b)): raise Fail("yield/lambda")
    call=None
    for n in ast.walk(tree):
        if is_method and isinstance(n,ast.Attribute) and n.attr==fn.name:
            c=parents[n]
            if isinstance(c,ast.Call) and c.func is n and isinstance(n.value,ast.Name) and n.value.id=="self": call=c
            else: raise Fail("not a self call")
        if not is_method and isinstance(n,ast.Name) and n.id==fn.name:
            c=parents[n]
            if isinstance(c,ast.Call) and c.func is n: call=c
            else: raise Fail("value use")
    if call is None: raise Fail("no call")
    caller=func_of(call,parents)
    if caller is None or caller is fn: raise Fail("no caller")
    if is_method and parents[caller] is not par: raise Fail("other class")
    if is_method and any(isinstance(d,ast.Name) and d.id in("staticmethod","classmethod") for d in caller.decorator_list): raise Fail("static")
    if is_method and fn.args.args and fn.args.args[0].arg!="self": raise Fail("self")
    doc,body=body_of(fn)
    if not body: raise Fail("empty")
    got=bind(fn,call,is_method,lines)
    comments=[re.sub(r"^\s*#\s?","",l) for l in lines[fn.lineno-1:fn.end_lineno] if l.strip().startswith("#")]
    above=[]; k=fn.lineno-2
    while k>=0 and lines[k].startswith("#"): above.insert(0,lines[k].lstrip("# ")); k-=1
    if any("#" in l and not l.strip().startswith("#") and "noqa" in l or "type:" in l for l in lines[fn.lineno-1:fn.end_lineno]): raise Fail("noqa")
    inner=stored(ast.Module(body=body,type_ignores=[]))
    stmt,chain=stmt_of(call,parents)
    caller_names=names(caller)|stored(caller)
    size=(caller.end_lineno-caller.lineno+1)+(fn.end_lineno-fn.lineno)
    if size>MAXFUNC: raise Fail("caller too long")
    # free names in the function must mean the same in the caller
    free=set()
    for b in body: free|=names(b)
    free-=set(got)|inner|{"self"}
    if free & stored(caller): raise Fail("shadowed free name")
    def remove_and(edits,inserts):
        # edits: (startline, startcol(bytes), endline, endcol, text)
        L=[l for l in lines]
        ops=[]
        for (sl,sc,el,ec,t) in edits: ops.append((sl,sc,el,ec,t))
        start=fn.lineno-1
        while start-1>=0 and lines[start-1].startswith(" "*fn.col_offset+"#") and not is_section(lines[start-1]): start-=1
        # also drop the blank lines before
        s=start
        while s-1>=0 and not lines[s-1].strip(): s-=1
        ops.append((s,0,fn.end_lineno-1,len(lines[fn.end_lineno-1].encode()),None))
        for (sl,sc,el,ec,t) in sorted(ops,reverse=True):
            if t is None: del L[sl:el+1]
            else:
                head=L[sl].encode()[:sc].decode(); tail=L[el].encode()[ec:].decode()
                L[sl:el+1]=(head+t+tail).split("\n")
        return "\n".join(L)
    def is_section(l): return False
    note=[c for c in above+comments]
    ind=" "*stmt.col_offset
    def comment_lines():
        t=[]
        if doc:
            d=" ".join(doc.split())
            d=re.sub(r"^Tell (whether|if|how|which|what|where) ",lambda k:k.group(1).capitalize()+" ",d); d=re.sub(r"^(Give|Return|Get) (?=\w)","",d); d=d[:1].upper()+d[1:]
            if 30<len(d)<150: t.append(d)
            elif len(d)>=150: raise Fail("long docstring")
        t+=note
        return "".join(f"{ind}# {x}\n" for x in t)
    last=body[-1]
    # two returns behind one test are a conditional expression
    if len(body)==2 and isinstance(body[0],ast.If) and not body[0].orelse and len(body[0].body)==1 and isinstance(body[0].body[0],ast.Return) and body[0].body[0].value is not None and isinstance(last,ast.Return) and last.value is not None and not (isinstance(stmt,ast.Return) and stmt.value is call):
        a,t,b=(src_of(lines,x) for x in (body[0].body[0].value,body[0].test,last.value))
        def wrap(text,node): return f"({text})" if isinstance(node,(ast.IfExp,ast.Lambda,ast.Tuple,ast.GeneratorExp)) or "\n" in text else text
        text="("+wrap(a,body[0].body[0].value)+" if "+wrap(t,body[0].test)+" else "+wrap(b,last.value)+")"
        fake=ast.parse(text).body[0].value
        # positions of the new expression are its own
        body=[ast.Return(value=fake)]; last=body[0]
        OVERRIDE[id(fake)]=text
    # case A : single return expr
    if len(body)==1 and isinstance(last,ast.Return) and last.value is not None:
        expr=last.value; text=OVERRIDE.get(id(expr)) or src_of(lines,expr)
        comp_targets=stored(expr)
        subs={}
        uses=Counter(x.id for x in ast.walk(expr) if isinstance(x,ast.Name))
        repeated=set()
        for c in ast.walk(expr):
            if isinstance(c,(ast.ListComp,ast.SetComp,ast.DictComp,ast.GeneratorExp)):
                first=names(c.generators[0].iter)
                inside=names(c)
                repeated|=inside
                for q in first:
                    if sum(1 for x in ast.walk(c) if isinstance(x,ast.Name) and x.id==q)==sum(1 for x in ast.walk(c.generators[0].iter) if isinstance(x,ast.Name) and x.id==q): repeated.discard(q)
        pre=[]
        for prm,arg in got.items():
            at=src_of(lines,arg) if arg in parents and arg.lineno else ast.unparse(arg)
            if names(arg)&comp_targets: raise Fail("capture")
            if uses[prm]==0:
                if not is_simple(arg): raise Fail("unused arg")
                continue
            if is_simple(arg) or (uses[prm]==1 and prm not in repeated and len(at)<60):
                subs[prm]=at if isinstance(arg,ATOM) else f"({at})"
            else: raise Fail("complex arg")
        if comp_targets & set(subs): raise Fail("capture2")
        new=expr_with(text,subs)
        if any(isinstance(x,ast.JoinedStr) for x in ast.walk(expr)) and subs and any(v!=k for k,v in subs.items()) and re.search(r'["\']',"".join(v for v in subs.values())): raise Fail("fstring")
        flat=" ".join(new.split())
        par_=parents[call]
        whole=isinstance(par_,(ast.Assign,ast.Return,ast.Expr,ast.AnnAssign,ast.keyword)) and getattr(par_,"value",None) is call
        multi="\n" in new
        if any(isinstance(c,(ast.JoinedStr,ast.FormattedValue)) for c in chain): raise Fail("in fstring")
        generator=isinstance(expr,ast.GeneratorExp)
        line_len=len(lines[call.lineno-1])+len(flat)
        if isinstance(stmt,(ast.Return,ast.Assign,ast.AnnAssign,ast.Expr)) and whole and not generator:
            t=new if not multi else f"({new})"
            if isinstance(expr,(ast.Tuple,)) and not text.startswith("("): t=f"({new})"
            if not isinstance(expr,ATOM) and multi: t=f"({new})"
            edits=[(call.lineno-1,call.col_offset,call.end_lineno-1,call.end_col_offset,t)]
            cl=comment_lines()
            if cl: edits.append((stmt.lineno-1,0,stmt.lineno-1,0,cl))
            return remove_and(edits,[])
        conditional=any(isinstance(c,(ast.BoolOp,ast.IfExp,ast.ListComp,ast.SetComp,ast.DictComp,ast.GeneratorExp,ast.Lambda,ast.comprehension,ast.Compare)) for c in chain)
        if len(flat)<=48 or (conditional and len(flat)<=64 and line_len<200):
            t=new if isinstance(expr,ATOM) and not multi else f"({flat if not multi else new})"
            if generator: t=new if new.strip().startswith("(") else f"({new})"
            edits=[(call.lineno-1,call.col_offset,call.end_lineno-1,call.end_col_offset,t)]
            cl=comment_lines()
            if cl and isinstance(stmt,(ast.Return,ast.Assign,ast.AnnAssign,ast.Expr,ast.If,ast.For)) and not (isinstance(stmt,ast.If) and lines[stmt.lineno-1].strip().startswith("elif")): edits.append((stmt.lineno-1,0,stmt.lineno-1,0,cl))
            return remove_and(edits,[])
        if conditional: raise Fail("conditional")
        # bind a local of the helper's name before the statement
        local=fn.name.lstrip("_")
        import keyword
        if keyword.iskeyword(local) or hasattr(builtins,local) or local in caller_names or local in free or local in module_names(tree): raise Fail("local name")
        if isinstance(stmt,ast.While) or (isinstance(stmt,ast.If) and lines[stmt.lineno-1].strip().startswith("elif")): raise Fail("elif/while")
        if isinstance(stmt,(ast.With,ast.Try,ast.For)) and not(isinstance(stmt,ast.For) and in_tree(call,stmt.iter)): raise Fail("compound")
        if isinstance(stmt,ast.If) and not in_tree(call,stmt.test): raise Fail("compound")
        t=new if not multi else f"({new})"
        pre=comment_lines()+f"{ind}{local} = {t}\n"
        edits=[(call.lineno-1,call.col_offset,call.end_lineno-1,call.end_col_offset,local),(stmt.lineno-1,0,stmt.lineno-1,0,pre)]
        return remove_and(edits,[])
    # statements
    rets=[x for b in body for x in ast.walk(b) if isinstance(x,ast.Return)]
    if any(isinstance(x,ast.Name) and isinstance(x.ctx,ast.Store) and x.id in got for b in body for x in ast.walk(b)): raise Fail("param stored")
    if inner & caller_names: raise Fail("locals collide")
    subs={};pre=""
    uses=Counter(x.id for b in body for x in ast.walk(b) if isinstance(x,ast.Name))
    for prm,arg in got.items():
        at=src_of(lines,arg) if hasattr(arg,"lineno") else ast.unparse(arg)
        if is_simple(arg):
            if isinstance(arg,ast.Name) and arg.id in inner: raise Fail("capture3")
            subs[prm]=at
        else:
            if uses[prm]==0: raise Fail("unused arg")
            if prm in caller_names or prm in module_names(tree): raise Fail("param name taken")
            if "\n" in at: at=f"({at})"
            pre+=f"{ind}{prm} = {at}\n"
    bodytext=lines[body[0].lineno-1:body[-1].end_lineno]
    first_doc=fn.body[0] if doc else None
    # include comment lines between doc/def and body
    shift=stmt.col_offset-body[0].col_offset
    edits2=[]
    base=body[0].lineno-1
    bl=list(bodytext)
    sub=[]
    for b in body:
        for x in ast.walk(b):
            if isinstance(x,ast.Name) and x.id in subs and subs[x.id]!=x.id: sub.append((x.lineno-1-base,x.col_offset,len(x.id.encode()),subs[x.id]))
    if sub and any(isinstance(x,ast.JoinedStr) for b in body for x in ast.walk(b)): 
        if any(re.search(r'["\']',v) for v in subs.values()): raise Fail("fstring")
    for l,c,k,new in sorted(sub,reverse=True):
        bb=bl[l].encode(); bl[l]=(bb[:c]+new.encode()+bb[c+k:]).decode()
    if any('"""' in l for l in bl): raise Fail("triple")
    def shifted(ls): return [(" "*shift+l if shift>=0 else l[-shift:]) if l.strip() else l for l in ls]
    if any("\n" in x for x in []): pass
    if isinstance(stmt,ast.Return) and stmt.value is call:
        if not isinstance(last,(ast.Return,ast.Raise)):
            raise Fail("tail without return")
        out=shifted(bl)
        text=comment_lines()+pre+"\n".join(out)
        edits=[(stmt.lineno-1,0,stmt.end_lineno-1,len(lines[stmt.end_lineno-1].encode()),text)]
        return remove_and(edits,[])
    if isinstance(stmt,ast.Expr) and stmt.value is call and not rets:
        text=comment_lines()+pre+"\n".join(shifted(bl))
        return remove_and([(stmt.lineno-1,0,stmt.end_lineno-1,len(lines[stmt.end_lineno-1].encode()),text)],[])
    if isinstance(stmt,(ast.Assign,)) and stmt.value is call and len(rets)==1 and rets[0] is last and last.value is not None:
        tgt=src_of(lines,stmt.targets[0]) if len(stmt.targets)==1 else None
        if tgt is None: raise Fail("targets")
        k=last.lineno-1-base
        col=len(bl[k])-len(bl[k].lstrip())
        assert bl[k].lstrip().startswith("return "),bl[k]
        val="\n".join([bl[k].lstrip()[7:]]+bl[k+1:])
        if "\n" in val: val=f"({val})" if not val.lstrip().startswith(("(","[","{")) or True else val
        if isinstance(stmt.targets[0],ast.Tuple) and isinstance(last.value,ast.Tuple): pass
        new=bl[:k]+(" "*col+f"{tgt} = {val}").split("\n")
        text=comment_lines()+pre+"\n".join(shifted(new))
        return remove_and([(stmt.lineno-1,0,stmt.end_lineno-1,len(lines[stmt.end_lineno-1].encode()),text)],[])
    if len(rets)==1 and rets[0] is last and last.value is not None:
        import keyword
        if any(isinstance(c,(ast.BoolOp,ast.IfExp,ast.ListComp,ast.SetComp,ast.DictComp,ast.GeneratorExp,ast.Lambda,ast.comprehension,ast.Compare,ast.JoinedStr,ast.FormattedValue)) for c in chain): raise Fail("position conditional")
        if isinstance(stmt,ast.While) or (isinstance(stmt,ast.If) and lines[stmt.lineno-1].strip().startswith("elif")): raise Fail("elif/while")
        if isinstance(stmt,(ast.With,ast.Try)) or (isinstance(stmt,ast.For) and not in_tree(call,stmt.iter)) or (isinstance(stmt,ast.If) and not in_tree(call,stmt.test)): raise Fail("compound")
        k=last.lineno-1-base
        col=len(bl[k])-len(bl[k].lstrip())
        val="\n".join([bl[k].lstrip()[7:]]+bl[k+1:])
        simple_last=isinstance(last.value,ast.Name) and last.value.id in inner
        if simple_last:
            local=val.strip(); new=bl[:k]
        else:
            local=fn.name.lstrip("_")
            if keyword.iskeyword(local) or hasattr(builtins,local) or local in caller_names or local in inner or local in free or local in module_names(tree): raise Fail("local name")
            if "\n" in val: val=f"({val})"
            new=bl[:k]+(" "*col+f"{local} = {val}").split("\n")
        text=comment_lines()+pre+"\n".join(shifted(new))+"\n"
        return remove_and([(call.lineno-1,call.col_offset,call.end_lineno-1,call.end_col_offset,local),(stmt.lineno-1,0,stmt.lineno-1,0,text)],[])
    raise Fail("position")
def in_tree(n,root): return any(x is n for x in ast.walk(root))
def module_names(tree):
    out=set()
    for n in tree.body:
        if isinstance(n,(ast.FunctionDef,ast.ClassDef,ast.AsyncFunctionDef)): out.add(n.name)
        elif isinstance(n,(ast.Import,ast.ImportFrom)):
            for a in n.names: out.add((a.asname or a.name).split(".")[0])
        elif isinstance(n,(ast.Assign,ast.AnnAssign)): out|=stored(n)
    return out
if __name__=="__main__":
    c=words(); total=0
    picked=[a for a in sys.argv[2:] if not a.startswith("--")]
    for p in files:
        rel=str(p.relative_to(ROOT))
        if rel.startswith("tests/") or (picked and not any(rel.startswith(x) for x in picked)): continue
        n=process(p,c); total+=n
    print(total,"inlined"); print(STAT.most_common())
