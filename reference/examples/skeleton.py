"""@OP@, to be written. `gpubench explain @OP@` says what it computes, with the bound that its result is held to.

Inputs: @INPUTS@. Outputs: @OUTPUTS@. A name with "?" is there where the attributes ask for it (else None), one with "*"
is a list.
"""

import gpubench


@gpubench.implements("@OP@", tensors="torch", when=lambda call: "it is not written yet")
def @OP@(@PARAMETERS@, *, out):
    raise NotImplementedError("@OP@ is not written yet")
