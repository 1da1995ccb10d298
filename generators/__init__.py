"""Generative models over states; they know no domain."""

import os

# Else the sums of MKL depend on the number of threads on some processors, and a design must not.
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")
