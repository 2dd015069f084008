"""How a sweep begins: which nodes run together, one strategy in each file.

To add a strategy, write a class with the two members of `RoundPlanner`, and name it in `strategy.py`.
"""
