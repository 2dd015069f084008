"""Who is convicted, by the evidence: nodes, their links and rails, leaves, paths between them.

One file for each part, in the order in which they build on each other: `node.py`, `clearance.py`, `path.py`, `leaf.py`,
`link.py`. `evidence_against.py` decides which bad runs count although nodes may lie. Each rule has a comment with
its reason and a case that it prevents. No node is convicted because of its groups or its rank.

Must not decide what runs next. Must not compose sentences.
"""
