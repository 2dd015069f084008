"""How soon agents are back after an outage of their broker, for those that connect and those that wait for them."""

LONGEST_PAUSE_S = 15.0
"""However long the broker was away, each of 10,000 agents is back within RECONNECTED_WITHIN_S, even if its first
attempt fails. With full jitter, an agent tries at most 15 s after the return of the broker. The attempt fails after
10 s at most, the next one follows within 15 s and takes up to 10 s, and the greeting takes 2 s:
15 + 10 + 15 + 10 + 2 = 52 s. With pauses of up to 20 s it would be 62 s.

The pauses also keep the broker from a storm. Agents that wait from 0 to 15 s come back with 2 / 15 of them in the first
second, 1,333 of 10,000, and with fewer in each later second. Mosquitto 2.0.11 greets 6,000 agents a second without TLS,
and 500 on one core with mutual TLS (2 ms each), so all 10,000 take 20 s.
"""

RECONNECTED_WITHIN_S = 60.0
"""All agents are connected again this long after the return of the broker."""
