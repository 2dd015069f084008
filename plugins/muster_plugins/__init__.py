"""The built-in plugins, each a package with a module that an entry point registers, like anybody else's.

They import only core. `checks`, `schedulers` and `notifiers` hold a package for each plugin; `shared` holds what
several
of them need.
"""
