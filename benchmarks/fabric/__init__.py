"""A fleet at the level of flows: what groups of its nodes measure if they run at the same time.

`network` has nodes, leaves and spines as links with capacities, `collectives` the flows that a group puts on them, and
`flows` the rates that these flows get from each other. `disturbances` is what makes healthy nodes slow, `defects` what
is broken, and `membership` what goes wrong with labels, invitations and ranks. `swept_fleet` runs the rounds of a
sweep on all of it. No rule of the coordinator is used to decide what is measured. Start with `swept_fleet`.
"""
