"""The built-in plugins. Each is a package whose module an entry point registers, as for any third-party plugin.

They import only core. `checks`, `machines`, `schedulers` and `notifiers` hold one package per plugin; `shared` holds
the code that several plugins need.
"""
