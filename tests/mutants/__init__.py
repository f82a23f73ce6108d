"""Each mechanism removed in turn: something must go red, or it is not proven to be there."""
