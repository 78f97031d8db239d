import numpy as np, torch, time
from mkclust import KernelBank
from mkclust.stack import as_stack
rng=np.random.default_rng(0); n=2**14+3
views=[torch.tensor(rng.normal(size=(n,d)),device="cuda") for d in (1,9)]
bank=KernelBank(widths=(0.5,1.0,2.0),polynomials=((1,2),),linear=None,on_the_fly=True)
src=[bank.fit_transform([getattr(v,k)() for v in views]) for k in ("float","double")]
V=torch.tensor(rng.normal(size=(n,5)),device="cuda")
for p in range(8):
    a=src[0].product(p,V); assert src[1].product(p,V) is None
    b=src[1].only([p]).rows(0,n)[0]@V
    print(p, None if a is None else float((a-b).norm()/b.norm()))
stacks=[as_stack(s,validate=False) for s in src]
x,y=(s.apply(V) for s in stacks); print([float((x[p]-y[p]).norm()/y[p].norm()) for p in range(8)])
X=torch.tensor(rng.normal(size=(100000,20)),device="cuda",dtype=torch.float32)
t=time.time(); b=KernelBank(widths=(1.0,),polynomials=(),linear=None,rules="kind",on_the_fly=True).fit_transform(X); torch.cuda.synchronize(); print("100k kind fit", time.time()-t)
for i in range(2):
    t=time.time(); r=b.rows(0,1000); torch.cuda.synchronize(); print("rows", time.time()-t)
t=time.time(); K=KernelBank().fit_transform(X[:10000]); torch.cuda.synchronize(); print("12 kernels 10k", time.time()-t, K.shape, K.dtype)
