"""A stand-in for the Kubernetes API server: what muster uses of it, over real HTTPS, with its state in memory.

It is no Kubernetes: nothing is scheduled, no kubelet runs, and what muster does not use is missing. What is there
refuses and conflicts as kube-apiserver does: authentication by token, RBAC, `resourceVersion`, the ownership of fields
by server-side apply, and the Status that says why. `tests/plugins/schedulers/kubernetes/standin` compares it with
answers of real servers. It also breaks to order, as `faults` says, and writes down who asked for what and when.
"""
