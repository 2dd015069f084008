"""A fleet on one host: `muster demo` and `muster up`.

Start with `demo.py` and `up.py`; `processes.py` starts and stops the processes of both.
"""
