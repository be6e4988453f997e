"""What `manage.py jobqueue` does, one module for each kind of word.

A word parses its arguments, makes one call of the manager and prints what came of it. It raises
`Refused` when nothing was done, and `Misused` when it was not told what to do.
"""

from .acting import CANCEL, REAP, RETRY
from .listing import LIST
from .pausing import PAUSE, RESUME
from .purging import PURGE
from .showing import SHOW
from .status import STATUS

WORDS = (STATUS, LIST, SHOW, RETRY, CANCEL, PAUSE, RESUME, PURGE, REAP)
