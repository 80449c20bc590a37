"""How each kind looks on the other side: steps down, what follows later, what comes back. Pure, and one file a kind.

A new kind is a row in a mode's table and two functions here.
"""
