"""The domain, pure: what travels, where to, under which name, in which form, and what to do about a difference.

Nothing here awaits, reads a clock or knows a server; the same inputs give the same plan.
"""
