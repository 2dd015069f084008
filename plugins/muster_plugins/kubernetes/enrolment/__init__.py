"""How an agent in Kubernetes gets a certificate in the name of its node, and no other.

An agent shows the signer a token that the kubelet has given to its pod. The API server says to which service account,
pod and node that token belongs. The signer puts this node's name, and nothing that the agent has sent but its public
key, into a certificate of a day. Start reading at `applicant`.
"""
