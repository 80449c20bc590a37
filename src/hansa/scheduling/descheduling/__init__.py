"""Moves pods that a lower cluster cannot schedule to another one."""
