"""x"""
import subprocess, sys, time, contextlib, statistics
import pytest

@contextlib.contextmanager
def busy(n=2):
    ps=[subprocess.Popen([sys.executable,"-c","while True: pass"]) for _ in range(n)]
    try: yield
    finally:
        for p in ps: p.kill(); p.wait()

def show(label, sweep, t0):
    print(f"\n== {label} {time.time()-t0:.1f}s {sweep.verdict} loss {sweep.smallest_loss} failed {[(f.node,f.part,f.code,f.direction) for f in sweep.failed_nodes]} links {sweep.failed_links and [l.between for l in sweep.failed_links]} fabric {[f.leaves for f in sweep.failed_fabric]} inc {sweep.inconclusive} rounds {len(sweep.rounds)}", sweep.notes)
    for r in sweep.rounds:
        for g in r.groups:
            print('   ', r.number, g.members, g.objective and round(g.objective*8000), g.ending, g.slow or '', [(b.node,b.reason) for b in g.blamed][:3])
        print('    ',r.learned)

def quarter(lab, sweep, node):
    m=statistics.median(g.objective for r in sweep.rounds for g in r.groups if g.objective)
    q=max(int(m*8000/4),1)
    lab.network.limit(node,sends=q,receives=q)
    return q

def test_all(laboratory):
    """x"""
    lab=laboratory
    def run(label, **kw):
        t0=time.time(); s=lab.sweep(**kw); show(label,s,t0); return s
    run("healthy")
    lab.set_right(); lab.network.oversubscribe(2); run("oversub 2")
    lab.set_right(); lab.network.oversubscribe(4); run("oversub 4")
    lab.set_right(); lab.network.hang("node-5"); run("hang")
    lab.set_right(); lab.network.lose("node-5",5,on_sending_only=True); run("asym loss")
    lab.set_right()
    with busy():
        s=run("busy healthy")
        print(quarter(lab,s,"node-2")); run("busy quarter")
        lab.set_right()
    for n in lab.network.cabling.nodes: lab.network.limit(n,sends=20000,receives=20000)
    s=run("unlimited", size_bytes=1<<22)
    lab.network.limit("node-3",sends=1000,receives=1000)
    run("unlimited, one at 1G", size_bytes=1<<22)
    q=quarter(lab,s,"node-3")
    with busy(): run(f"unlimited busy, one at quarter {q}", size_bytes=1<<22)

def test_large(large_laboratory):
    """x"""
    lab=large_laboratory
    def run(label, **kw):
        t0=time.time(); s=lab.sweep(**kw); show(label,s,t0); return s
    run("12 healthy")
    lab.network.limit("node-9",sends=20,receives=20); run("12 one slow")
