"""`python -m nplm2003 ...` is the command line of the study."""

from nplm2003.cli import main

raise SystemExit(main())
