"""System checks. `catalogue` lists every id; one module looks at each kind of mistake.

Nothing is imported here: E012 is about an app that is not installed, whose models cannot be.
"""
