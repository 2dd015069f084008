"""How a sweep begins: the strategies that group nodes, one in each file.

To add a strategy, write a class with the two members of `RoundPlanner`, and name it in `strategy.py`.
"""
