"""rename.py ROOT MAP.json : MAP = list of [file, qualified name, new name]. Uses basedpyright's LSP."""
import ast, json, subprocess, sys, threading, queue, time, os
from pathlib import Path
from urllib.parse import unquote, urlparse
ROOT = Path(sys.argv[1]).resolve()
class LSP:
    def __init__(self):
        self.p = subprocess.Popen(["v/bin/basedpyright-langserver","--stdio"],stdin=subprocess.PIPE,stdout=subprocess.PIPE,stderr=subprocess.DEVNULL,cwd=ROOT)
        self.n=0; self.q={}; threading.Thread(target=self.read,daemon=True).start()
    def send(self,m):
        b=json.dumps({"jsonrpc":"2.0",**m}).encode(); self.p.stdin.write(b"Content-Length: %d\r\n\r\n"%len(b)+b); self.p.stdin.flush()
    def read(self):
        f=self.p.stdout
        while True:
            n=0
            while True:
                l=f.readline()
                if not l: return
                if l==b"\r\n": break
                if l.lower().startswith(b"content-length"): n=int(l.split(b":")[1])
            m=json.loads(f.read(n))
            if "method" in m and "id" in m:
                r=None
                if m["method"]=="workspace/configuration":
                    r=[{"analysis":{"typeCheckingMode":"off","diagnosticMode":"openFilesOnly","autoSearchPaths":True},"pythonPath":str(ROOT/".venv/bin/python")} if "python" in (i.get("section") or "") else {} for i in m["params"]["items"]]
                self.send({"id":m["id"],"result":r})
            elif "id" in m:
                self.q[m["id"]].put(m)
    def call(self,method,params,timeout=600):
        self.n+=1; self.q[self.n]=queue.Queue(); i=self.n
        self.send({"id":i,"method":method,"params":params})
        m=self.q[i].get(timeout=timeout)
        if "error" in m: raise RuntimeError(m["error"])
        return m["result"]
    def note(self,method,params): self.send({"method":method,"params":params})
def uri(p): return Path(p).resolve().as_uri()
def locate(path,qual):
    src=Path(path).read_text(); tree=ast.parse(src); lines=src.split("\n")
    node=tree
    parts=qual.split(".")
    for k,part in enumerate(parts):
        found=None
        body=getattr(node,"body",[])
        stack=list(body)
        for n in stack:
            if isinstance(n,(ast.FunctionDef,ast.AsyncFunctionDef,ast.ClassDef)) and n.name==part: found=n;break
            if isinstance(n,ast.AnnAssign) and isinstance(n.target,ast.Name) and n.target.id==part: found=n.target;break
            if isinstance(n,ast.Assign) and any(isinstance(t,ast.Name) and t.id==part for t in n.targets):
                found=[t for t in n.targets if isinstance(t,ast.Name) and t.id==part][0];break
            if isinstance(n,(ast.If,ast.Try)): stack.extend(n.body)
        if found is None and isinstance(node,(ast.FunctionDef,ast.AsyncFunctionDef)):
            a=node.args
            for x in a.posonlyargs+a.args+a.kwonlyargs:
                if x.arg==part: found=x
            if found is None:
                for x in ast.walk(node):
                    if isinstance(x,ast.Name) and x.id==part and isinstance(x.ctx,ast.Store): found=x;break
        if found is None and isinstance(node,ast.ClassDef):
            for x in ast.walk(node):  # self.attr = 
                if isinstance(x,ast.Attribute) and isinstance(x.value,ast.Name) and x.value.id=="self" and x.attr==part and isinstance(x.ctx,ast.Store):
                    # column in utf16 ~ str idx
                    line=x.end_lineno-1; col=len(lines[line].encode()[:x.end_col_offset].decode())-len(part)
                    return line,col
        if found is None: raise KeyError(f"{path}: {qual}: no {part}")
        node=found
    if isinstance(node,(ast.FunctionDef,ast.AsyncFunctionDef,ast.ClassDef)):
        ln=node.lineno-1
        col=lines[ln].index(node.name, lines[ln].index("def " if not isinstance(node,ast.ClassDef) else "class ")+4)
        return ln,col
    return node.lineno-1,len(lines[node.lineno-1].encode()[:node.col_offset].decode())
def u16(line,ch):  # utf16 offset -> python index
    return len(line.encode("utf-16-le")[:2*ch].decode("utf-16-le"))
def apply(edit):
    changed={}
    for dc in edit.get("documentChanges",[]) or []:
        if "textDocument" in dc: changed.setdefault(dc["textDocument"]["uri"],[]).extend(dc["edits"])
    for u,e in (edit.get("changes") or {}).items(): changed.setdefault(u,[]).extend(e)
    total=0
    for u,edits in changed.items():
        p=Path(unquote(urlparse(u).path)); 
        if ".venv" in str(p): raise RuntimeError(f"edit outside: {p}")
        lines=p.read_text().split("\n")
        seen=set()
        for e in sorted(edits,key=lambda e:(e["range"]["start"]["line"],e["range"]["start"]["character"]),reverse=True):
            k=json.dumps(e["range"])
            if k in seen: continue
            seen.add(k)
            s,t=e["range"]["start"],e["range"]["end"]
            assert s["line"]==t["line"],e
            l=lines[s["line"]]
            lines[s["line"]]=l[:u16(l,s["character"])]+e["newText"]+l[u16(l,t["character"]):]; total+=1
        p.write_text("\n".join(lines))
    return list(changed),total
def main():
    rows=json.load(open(sys.argv[2]))
    lsp=LSP()
    lsp.call("initialize",{"processId":os.getpid(),"rootUri":ROOT.as_uri(),"capabilities":{"workspace":{"workspaceEdit":{"documentChanges":True},"configuration":True,"didChangeWatchedFiles":{"dynamicRegistration":True}},"textDocument":{"rename":{"prepareSupport":True}}},"workspaceFolders":[{"uri":ROOT.as_uri(),"name":"w"}]})
    lsp.note("initialized",{})
    time.sleep(float(os.environ.get("WARM","12")))
    for path,qual,new in rows:
        t=time.time(); f=ROOT/path
        try: line,col=locate(f,qual)
        except (KeyError,FileNotFoundError,ValueError) as e:
            print("SKIP",e); continue
        text=f.read_text(); col16=len(text.split("\n")[line][:col].encode("utf-16-le"))//2
        lsp.note("textDocument/didOpen",{"textDocument":{"uri":uri(f),"languageId":"python","version":1,"text":text}})
        try:
            r=lsp.call("textDocument/rename",{"textDocument":{"uri":uri(f)},"position":{"line":line,"character":col16},"newName":new})
        except Exception as e:
            print("FAIL",path,qual,e); lsp.note("textDocument/didClose",{"textDocument":{"uri":uri(f)}}); continue
        lsp.note("textDocument/didClose",{"textDocument":{"uri":uri(f)}})
        if not r: print("NONE",path,qual); continue
        files,n=apply(r)
        lsp.note("workspace/didChangeWatchedFiles",{"changes":[{"uri":u,"type":2} for u in files]})
        print(f"ok {path}:{qual} -> {new}: {n} edits in {len(files)} files, {time.time()-t:.1f}s",flush=True)
main()
