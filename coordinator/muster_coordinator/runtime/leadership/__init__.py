"""Which of several coordinators leads the fleet. The others stand by; at most one of them leads at a time.

Start with `leader_lock.py`, which says what a lock promises. A leader that was paused does not notice that another one
leads by now. Three things keep it from harm: the database refuses its commits, agents refuse its commands, and plugins
are called only while the lock is certain.
"""
