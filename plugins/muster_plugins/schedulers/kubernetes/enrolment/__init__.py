"""How an agent in Kubernetes gets a certificate in the name of its node, and in no other name.

An agent sends the signer a token that the kubelet has given to its pod. The API server says to which service account,
pod and node that token belongs. The signer issues a certificate with this node's name and the agent's public key, and
with nothing else from the agent. It is valid for a day. Start reading at `applicant`.
"""
