"""Translation of each kind: steps for the lower copy, patches that keep it in sync, patches that are synced up. Pure.

One module per kind. A new kind is a rule in a mode and two functions here.
"""
