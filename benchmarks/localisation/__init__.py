"""The localisation benchmark: methods that name culprits, played on the same fabrics by seed.

A case gives a fabric with its faults and what a method is told about it. `scoring` plays a method and compares its
answer with the truth. Start with `__main__`.
"""
